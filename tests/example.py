"""A ledger as people would have it after a few days of work, for tests and for looking at."""

from __future__ import annotations

from gitledger import layout
from gitledger.model import Change, Json, Key
from tests.test_tree import A, B, Clone, genesis, writer

LOGIN, DOCS, CART = "T-0002@aaaaaa", "T-0003@aaaaaa", "T-0001@aaaaaa"
HEAD = "3f2a9c1d7e6b5a4f8c0d1e2f3a4b5c6d7e8f9a0b"
POSITION: dict[str, Json] = {
    "branch": "feature/login",
    "head": HEAD,
    "tree": "8c7b6a5f4e3d2c1b0a9f8e7d6c5b4a3f2e1d0c9b",
    "dirty": 2,
    "fingerprint": "5d0c1b2a",
    "worktree": "main",
    "operation": "",
}
NEXT = """Write `tests/test_logout.py`: after a logout the old cookie must be refused.
Run `pytest -q tests/` and look at the two skipped cases."""
WHY = """scrypt's parameters cannot be raised later without the password.

argon2-cffi stores them with the hash:

    $argon2id$v=19$m=65536,t=3,p=4$…"""


def task(me: Clone, title: str, slug: str, status: str, **more: Json) -> Change:
    return Change({"title": title, "slug": slug, "status": status, "at": me.at(), "by": me.writer, **more})


def entry(me: Clone, kind: layout.Kind, title: str, owner: Key | None, **more: Json) -> Key:
    key = me.new(kind)
    records = {key: Change({"title": title, "at": me.at(), "by": me.writer, "task": owner, **more})}
    if owner:
        records[owner] = Change({}, {"links": {key: {"kind": kind.word, "title": title, "open": True}}})
    me.say(records)
    return key


def work() -> Clone:
    """One writer's clone after some work, a meeting with another writer, a checkpoint and a handover."""
    me, other = genesis()
    me.say(
        {
            "project": Change(
                {
                    "title": "Corner shop",
                    "description": "An online shop for one small bakery: order by ten, fetch at noon.",
                    "goal": "The bakery takes orders without a phone.\n\nNo accounts for customers who order once.",
                }
            ),
            "config": Change({"briefing.lines": 60, "checkpoint.every": "turn", "capture.text": "bounded"}),
        }
    )
    me.say({CART: task(me, "Shopping cart", "shopping-cart", "done", done_at=me.at(), area="web")})
    criteria = {
        "c1@aaaaaa": {"text": "A person logs in with mail and password"},
        "c2@aaaaaa": {"text": "A wrong password is refused after the same time as a right one"},
        "c3@aaaaaa": {"text": "After a logout the old cookie is refused"},
        "c4@aaaaaa": {"text": "Sign-in with a phone number", "dropped": True},
    }
    goal = "The baker logs in to see today's orders.\n- one account\n- no sign-up form"
    me.say(
        {
            LOGIN: Change(
                task(
                    me,
                    "Log in & out, <safely>",
                    "log-in-out-safely",
                    "active",
                    goal=goal,
                    scope="The admin pages.",
                    non_goals="Customers' accounts.",
                    area="web",
                    parent=CART,
                    next=NEXT,
                    next_at=me.at(),
                    summary="Login works, logout is half done.",
                ).set,
                {"criteria": criteria, "depends": {CART: {"live": True, "title": "Shopping cart"}}},
            )
        }
    )
    me.say({DOCS: task(me, "Describe how to restore a backup", "describe-how-to-restore-a-backup", "discovered")})
    first = entry(
        me,
        layout.DECISION,
        "Passwords are hashed with scrypt",
        LOGIN,
        status="accepted",
        why="In the standard library; no new dependency.",
    )
    second = me.new(layout.DECISION)
    me.say(
        {
            second: Change(
                {
                    "title": "Passwords are hashed with argon2id",
                    "status": "accepted",
                    "task": LOGIN,
                    "at": me.at(),
                    "by": A,
                    "why": WHY,
                    "supersedes": first,
                }
            ),
            first: Change({"status": "superseded", "superseded_by": second}),
            LOGIN: Change(
                {},
                {
                    "links": {
                        first: {"open": False},
                        second: {"kind": "decision", "title": "Passwords are hashed with argon2id", "open": True},
                    }
                },
            ),
        }
    )
    entry(
        me,
        layout.BLOCKER,
        "The staging server refuses our key",
        LOGIN,
        status="open",
        text="The staging server refuses our key\nsince Monday: `Permission denied (publickey)`.",
    )
    entry(
        me,
        layout.QUESTION,
        "May a session last thirty days?",
        LOGIN,
        status="open",
        text="May a session last thirty days?\nThe baker's tablet stays in the shop.",
    )
    entry(
        me,
        layout.ARTIFACT,
        "Sketch of the login page",
        LOGIN,
        path="docs/sketches/login.svg",
        blob="4b825dc642cb6eb9a060e54bf8d69288fbee4904",
    )
    entry(
        me,
        layout.NOTE,
        "The tablet's clock is 4 minutes slow",
        None,
        text="The tablet's clock is 4 minutes slow.\nDo not rely on its time.",
    )
    evidence = {
        "e1@aaaaaa": {
            "criterion": "c1@aaaaaa",
            "kind": "run",
            "command": "pytest -q tests/test_login.py",
            "exit": 0,
            "output": "14 passed",
            "at": me.at(),
            "head": HEAD,
            "dirty": 0,
        },
        "e2@aaaaaa": {
            "criterion": "c2@aaaaaa",
            "kind": "claim",
            "text": "Looked at the timing by hand, seems equal",
            "at": me.at(),
        },
        "e3@aaaaaa": {"kind": "commit", "commit": HEAD, "at": me.at()},
        "e4@aaaaaa": {
            "kind": "path",
            "path": "src/shop/login.py",
            "blob": "9daeafb9864cf43055ae93beb0afd6c7d144bfa4",
            "at": me.at(),
            "head": HEAD,
            "dirty": 2,
        },
        "e5@aaaaaa": {
            "criterion": "c3@aaaaaa",
            "kind": "run",
            "command": "pytest -q -k 'logout | cookie'",
            "exit": 1,
            "at": me.at(),
            "head": HEAD,
            "dirty": 2,
        },
    }
    completed = {
        "d1@aaaaaa": {"text": "The form and its handler", "at": me.at(), "evidence": "e1@aaaaaa"},
        "d2@aaaaaa": {"text": "Hashing moved to argon2id", "at": me.at(), "evidence": "e3@aaaaaa"},
        "d3@aaaaaa": {"text": "Read the cookie specification again", "at": me.at()},
    }
    me.say({LOGIN: Change({}, {"evidence": evidence, "completed": completed})})
    snapshot(me)
    close_session(me)
    other.say({"writer:bbbbbb": writer(B)})
    other.say(
        {
            "D-0001@bbbbbb": Change(
                {
                    "title": "Prices are whole cents",
                    "status": "accepted",
                    "at": other.at(),
                    "by": B,
                    "why": "Floats lose them.",
                }
            )
        }
    )
    me.hear(other.events)
    return me


def snapshot(me: Clone) -> None:
    point, over, at = me.new(layout.CHECKPOINT), me.new(layout.HANDOVER), me.at()
    told: dict[str, Json] = {
        "task": LOGIN,
        "task_name": "T-0002",
        "task_title": "Log in & out, <safely>",
        "at": at,
        "by": A,
        "reason": "compact",
        "session": layout.session_key("claude", "1"),
        "position": POSITION,
        "ledger": "0199",
        "objective": "The baker logs in to see today's orders.",
        "next": NEXT,
        "state": [
            "Login works and is tested",
            "Logout deletes the cookie, but the server still accepts it",
            "2 files are not committed",
        ],
        "commits": [
            {"oid": HEAD, "subject": "Hash passwords with argon2id"},
            {"oid": "77" * 20, "subject": "Add the login form"},
        ],
        "changed": ["src/shop/login.py", "src/shop/`odd` name|.py"],
        "blockers": [{"id": "B-0001", "text": "The staging server refuses our key"}],
        "questions": [{"id": "Q-0001", "text": "May a session last thirty days?"}],
    }
    checkpoint: dict[str, Json] = {
        **told,
        "title": "Login done, logout half done",
        "number_name": point.partition("@")[0],
        "derived": True,
        "previous": "",
        "completed": ["The form and its handler", "Hashing moved to argon2id"],
        "criteria": [
            {
                "text": "A person logs in with mail and password",
                "met": True,
                "proof": "`pytest -q tests/test_login.py` exited 0",
            },
            {"text": "After a logout the old cookie is refused", "met": False, "proof": ""},
        ],
        "evidence": [
            {"state": "verified", "text": "`pytest -q tests/test_login.py` exited 0"},
            {"state": "UNVERIFIED", "text": "claimed: Looked at the timing by hand"},
        ],
        "decisions": [{"id": "D-0002", "title": "Passwords are hashed with argon2id"}],
        "last_prompt": "and now the logout please\n\n```python\nassert client.get('/admin').status == 403\n```",
        "last_answer": "The cookie is deleted. Next I write the test that replays the old one.",
        "errors": [],
    }
    name = point.partition("@")[0]
    handover = {
        **told,
        "title": "Login done, logout half done",
        "client": "claude",
        "number_name": over.partition("@")[0],
        "checkpoint_name": name,
        "recovered": True,
        "kind": "derived",
    }
    me.say(
        {
            point: Change(checkpoint),
            over: Change(handover),
            LOGIN: Change({"checkpoint": point, "checkpoint_at": at}),
            "project": Change(
                {"checkpoint": {"name": name, "key": point, "task_name": "T-0002", "at": at, "path": ""}}
            ),
        }
    )


def close_session(me: Clone) -> None:
    closed: dict[str, Json] = {
        "at": me.at(),
        "reason": "prompt_input_exit",
        "turns": 14,
        "handover_name": "H-000001",
        "checkpoint_name": "C-000001",
        "position": POSITION,
        "files": ["src/shop/login.py"],
    }
    key = layout.session_key("claude", "1")
    me.say({key: Change({"client": "claude", "at": me.at(), "by": A, "state": "closed", "closed": closed})})
