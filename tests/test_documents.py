"""The documents: what they say, that text stays text in them, and that none passes a blob's limit."""

from __future__ import annotations

import json
import posixpath
import re
import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gitledger import codec, fold, layout
from gitledger.model import Change, Json, Record, Stamp
from gitledger.render import indexes, project, snapshots, task
from gitledger.render.cut import CUT, cut_record
from gitledger.render.page import LIMIT, anchor, page, prose, relative, said, when
from gitledger.view import View
from tests.example import LOGIN, NEXT, work
from tests.sealed import Repo
from tests.test_tree import A, B, Clone, commit, genesis

FOLDER = "tasks/00xx/T-0002-log-in-out-safely"


@pytest.fixture(scope="module")
def files() -> dict[str, str]:
    return {path: data.decode() for path, data in work().files.items()}


def section(text: str, title: str) -> str:
    """The body of one section."""
    found = re.search(rf"^## {re.escape(title)}\n\n(.*?)(?=\n## |\Z)", text, re.DOTALL | re.MULTILINE)
    assert found, f"no section {title!r}"
    return found[1].strip()


# ── what they say ────────────────────────────────────────────────────────────────────────────
def test_a_task_says_what_it_is_and_each_criterion_with_its_proof(files):
    text = files[f"{FOLDER}/TASK.md"]
    assert text.startswith("# T-0002 Log in ")
    assert "\n\n**active** · [State](STATE.md) · [To do](TODO.md) · [Sources](SOURCES.md)\n" in text
    assert "today's orders" in section(text, "Goal")
    assert section(text, "Scope") == "The admin pages."
    assert section(text, "Not in scope") == "Customers' accounts."
    assert section(text, "Acceptance criteria").split("\n") == [
        "- [x] A person logs in with mail and password — verified: `pytest -q tests/test_login.py` exited 0",
        "- [ ] A wrong password is refused after the same time as a right one — UNVERIFIED: "
        "claimed: Looked at the timing by hand, seems equal",
        "- [ ] After a logout the old cookie is refused — failed: `pytest -q -k 'logout | cookie'` exited 1",
        "- ~~Sign-in with a phone number~~ dropped",
    ]
    assert section(text, "Depends on") == "- [T-0001](../T-0001-shopping-cart/TASK.md) Shopping cart"
    decisions = section(text, "Decisions")
    assert "[D-0002](../../../decisions/00xx/D-0002.md) Passwords are hashed with argon2id" in decisions
    assert "Passwords are hashed with scrypt — superseded" in decisions


def test_a_state_begins_with_the_next_action(files):
    text = files[f"{FOLDER}/STATE.md"]
    assert re.findall(r"^## (.*)$", text, re.MULTILINE) == [
        "Next action",
        "Completed",
        "Blockers",
        "Open questions",
        "Verified state",
        "Newest checkpoint",
    ]
    assert "> Run \\`pytest -q tests/\\` and look" in section(text, "Next action")
    assert "- 2026-11-30 · Read the cookie specification again — UNVERIFIED" in section(text, "Completed")
    assert "[B-0001](../../../blockers/00xx/B-0001.md) The staging server" in section(text, "Blockers")
    assert "| `pytest -q -k 'logout \\| cookie'` exited 1 | failed |" in section(text, "Verified state")
    assert "claimed" not in section(text, "Verified state")
    assert "[C-000001](checkpoints/0000xx/C-000001.md)" in section(text, "Newest checkpoint")


def test_what_is_to_do_holds_only_what_is_open(files):
    text = files[f"{FOLDER}/TODO.md"]
    still = section(text, "Criteria still open")
    assert still.count("- [ ]") == 2
    assert "[x]" not in still
    assert "mail and password" not in still
    assert "Q-0001" in section(text, "Open questions")
    resolved = work()
    resolved.say({LOGIN: Change({}, {"links": {"B-0001@aaaaaa": {"open": False}}})})
    assert section(resolved.files[f"{FOLDER}/TODO.md"].decode(), "Blockers") == "*None.*"


def test_sources_name_every_command_commit_and_file(files):
    text = files[f"{FOLDER}/SOURCES.md"]
    assert "| e1 | `pytest -q tests/test_login.py` | 0 | clean tree | `3f2a9c1d7e6b` |" in section(text, "Commands")
    assert "3f2a9c1d7e6b5a4f8c0d1e2f3a4b5c6d7e8f9a0b" in section(text, "Commits")
    assert "src/shop/login.py | `9daeafb9864c`" in section(text, "Files")
    assert "Looked at the timing" in section(text, "Claims, UNVERIFIED")
    for title in ("Decisions", "Blockers", "Questions", "Artifacts"):
        assert section(text, title)


def test_a_task_accepted_without_proof_says_so():
    record = Record(
        "T-0001@aaaaaa", {"status": ("done", Stamp(1, A, 1)), "accept_unproven": ("no time", Stamp(1, A, 1))}
    )
    assert b"- **Accepted without proof:** no time" in task.documents("T-0001", record, str)["TASK.md"]


@pytest.mark.parametrize("path", [f"{FOLDER}/checkpoints/0000xx/C-000001.md", "handovers/0000xx/H-000001.md"])
def test_a_snapshot_says_objective_state_next_action_and_where_the_repository_stood(files, path):
    text = files[path]
    assert section(text, "Objective") == "The baker logs in to see today's orders."
    assert section(text, "Current State").split("\n")[0] == "- Login works and is tested"
    assert "after a logout the old cookie must be refused." in section(text, "Next Action")
    stood = section(text, "Where the repository stood")
    for said_ in (
        "`feature/login`",
        "`3f2a9c1d7e6b5a4f8c0d1e2f3a4b5c6d7e8f9a0b`",
        "dirty, 2 paths differ",
        "`5d0c1b2a`",
    ):
        assert said_ in stood
    assert "B-0001 The staging server refuses our key" in section(text, "Blockers")
    commits = section(text, "Commits since the previous checkpoint here, by whomever")
    assert "`3f2a9c1d7e6b` Hash passwords with argon2id" in commits
    assert "``src/shop/`odd` name|.py``" in section(text, "Paths that differ since then")


def test_a_handover_says_when_it_was_recovered_and_that_git_is_the_truth(files):
    text = files["handovers/0000xx/H-000001.md"]
    assert "**Recovered:**" in text
    assert "not the source of truth, git is" in text
    assert "[T-0002](../../tasks/00xx/README.md#t-0002-aaaaaa)" in text


def test_a_checkpoint_that_stands_for_a_missing_one_says_so():
    record = Record("C-000001@aaaaaa", {"missing": ("disk full", Stamp(1, A, 1))})
    assert b"**CHECKPOINT MISSING:** disk full" in snapshots.checkpoint(record, below_task=False)


def test_a_snapshot_is_never_written_anew_whatever_happens_to_what_it_names():
    me = work()
    before = {p: d for p, d in me.files.items() if "/C-0" in p or "/H-0" in p}
    other = Clone(B)
    other.hear(me.events)
    other.tick = 0
    other.say({LOGIN: Change({"title": "Another title", "slug": "another", "next": "Another action"})})
    # as if bbbbbb had made the same numbers first, without knowing of aaaaaa's
    early = "2026-11-30T01:00:00.000Z"
    other.say(
        {k.replace(A, B): Change({"title": "x", "at": early}) for k in (LOGIN, "C-000001@aaaaaa", "H-000001@aaaaaa")}
    )
    me.hear(other.events)
    after = {p: d for p, d in me.files.items() if "/C-000001@" in p or "/H-000001@" in p}
    assert {posixpath.basename(p) for p in after} == {
        "C-000001@aaaaaa.md",
        "C-000001@aaaaaa.json",
        "H-000001@aaaaaa.md",
        "H-000001@aaaaaa.json",
    }
    assert sorted(before.values()) == sorted(after.values())


def test_a_session_has_a_document_once_it_is_closed(files):
    (path,) = [p for p in files if p.startswith("sessions/") and p.endswith(".md")]
    assert (
        "- **Closed:** 2026-11-30 09:00 UTC · prompt\\_input\\_exit" in files[path]
        or "prompt_input_exit" in files[path]
    )
    assert "- **Turns:** 14" in files[path]
    assert snapshots.session("S-0123456789ab", Record("S-0123456789ab", {"client": ("x", Stamp(1, A, 1))})) is None


def test_the_other_records_say_what_they_are(files):
    assert "[D-0001@aaaaaa](D-0001@aaaaaa.md)" in files["decisions/00xx/D-0002.md"]
    assert "scrypt's parameters" in section(files["decisions/00xx/D-0002.md"], "Why")
    assert "[D-0002](D-0002.md)" in files["decisions/00xx/D-0001@aaaaaa.md"]
    assert "since Monday" in section(files["blockers/00xx/B-0001.md"], "What is in the way")
    assert "tablet" in section(files["questions/00xx/Q-0001.md"], "Question")
    assert "`docs/sketches/login.svg`" in files["artifacts/00xx/A-0001.md"]
    assert "Do not rely on its time." in files["notes/00xx/N-0001.md"]


def test_the_lists_say_what_is_open_and_where_the_rest_is(files):
    assert f"- [T-0002]({FOLDER}/TASK.md) Log in" in section(files["INDEX.md"], "Active")
    assert "| done | 1 |" in section(files["INDEX.md"], "How many")
    assert "[00xx](tasks/00xx/README.md) | 2 | 1 |" in section(files["INDEX.md"], "All tasks")
    assert (
        '<a id="d-0001-bbbbbb"></a>[D-0001](decisions/00xx/D-0001.md) Prices are whole cents' in files["DECISIONS.md"]
    )
    assert "scrypt" not in files["DECISIONS.md"]
    assert "[B-0001](blockers/00xx/B-0001.md)" in section(files["BLOCKERS.md"], "Blockers")
    assert "[Q-0001](questions/00xx/Q-0001.md)" in section(files["BLOCKERS.md"], "Open questions")
    assert "[A-0001](artifacts/00xx/A-0001.md)" in files["ARTIFACTS.md"]
    assert f"[C-000001]({FOLDER}/checkpoints/0000xx/C-000001.md)" in section(files["PROJECT.md"], "Newest checkpoint")


@pytest.mark.parametrize("source", ["INDEX.md", "tasks/00xx/T-0001-a/TASK.md", "tasks/00xx/README.md", "a/b/c/d.md"])
@pytest.mark.parametrize(
    "target", ["INDEX.md", "tasks/00xx/T-0001-a/STATE.md", "a/b/x.md", "tasks/README.md", "a/b.md"]
)
def test_a_link_is_the_way_from_file_to_file_wherever_this_process_stands(source, target, monkeypatch):
    expected = posixpath.relpath(target, posixpath.dirname(source) or ".")

    def gone():
        raise FileNotFoundError("the present folder was removed")

    monkeypatch.setattr("os.getcwd", gone)
    assert relative(source, target) == expected


def test_every_link_leads_somewhere(files):
    for path, text in files.items():
        for target in re.findall(r"(?<!\\)\]\(([^)\s]+)\)", text) if path.endswith(".md") else ():
            file, _, mark = target.partition("#")
            there = posixpath.normpath(posixpath.join(posixpath.dirname(path), file))
            assert there in files, (path, target)
            assert not mark or f'<a id="{mark}"></a>' in files[there], (path, target)


# ── what a person without gitledger can do ───────────────────────────────────────────────────
def test_the_readme_says_what_the_branch_is_and_how_to_check_it(files):
    text = files["README.md"]
    assert "# The ledger of Corner shop" in text
    assert "Please do not merge this branch" in text
    assert "git show ledger/main:keys/allowed_signers > signers" in text
    assert "git -c gpg.ssh.allowedSignersFile=signers verify-commit ledger/main" in text
    for path in re.findall(r"\]\(([^)]+)\)", text):
        assert path in files


@pytest.fixture
def signed(repo: Repo, tmp_path: Path) -> tuple[Repo, str]:
    """A repository whose newest commit is signed by the key that is returned."""
    key = tmp_path / "key"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "", "-f", key], check=True, timeout=120)
    tree = repo.git("rev-parse", "HEAD^{tree}")
    made = repo.git("-c", "gpg.format=ssh", "-c", f"user.signingkey={key}", "commit-tree", "-S", "-m", "C-000001", tree)
    repo.git("update-ref", "refs/heads/ledger/main", made)
    return repo, key.with_suffix(".pub").read_text().strip()


@pytest.mark.parametrize(
    ("revoked", "good"), [(None, True), ("2036-01-01T00:00:00.000Z", True), ("2020-01-01T00:00:00.000Z", False)]
)
def test_stock_git_takes_the_signers_file_for_what_it_says(signed, tmp_path, revoked, good):
    repo, key = signed
    stamp = Stamp(1, A, 1)
    record = Record("writer:aaaaaa", {"principal": ("aaaaaa@ledger", stamp), "public_key": (key, stamp)})
    if revoked:
        record.fields["revoked"] = ({"at": revoked, "by": A}, stamp)
    (tmp_path / "signers").write_bytes(project.allowed_signers([record]))
    check = ("-c", f"gpg.ssh.allowedSignersFile={tmp_path / 'signers'}", "verify-commit", "ledger/main")
    if good:
        repo.git(*check)
    else:
        with pytest.raises(AssertionError):
            repo.git(*check)


# ── text stays text ──────────────────────────────────────────────────────────────────────────
HOSTILE = [
    "# Heading\n## Next Action\n> quote\n- item\n1. one\n===\n---\n| a | b |\n|---|---|",
    "[click](http://evil.example) ![x](http://evil.example/x.png) <img src=x onerror=alert(1)> <!-- <details>",
    "```\n# out\n```\n~~~\n</code></pre>\n    indented\n\tindented",
    "a\\\nb  \nc\\",
    "`unclosed ``code *star _under_ ~~strike~~ @someone #1 $x$ &amp; \x1b[31m\u202e\u200b",
    "|\\|``|",
]


def everything(text: str) -> dict[str, bytes]:
    """Documents of records all of whose texts are `text`."""
    me, _ = genesis()
    at, row = (
        me.at(),
        {"text": text, "title": text, "id": text, "proof": text, "state": text, "oid": text, "subject": text},
    )
    item: dict[str, dict[str, Json]] = {
        "x1@aaaaaa": {**row, "kind": "run", "command": text, "exit": 1, "at": text, "head": text}
    }
    told: dict[str, Json] = {
        **dict.fromkeys(
            (
                "title",
                "goal",
                "scope",
                "non_goals",
                "area",
                "next",
                "summary",
                "why",
                "text",
                "resolution",
                "answer",
                "path",
                "objective",
                "last_prompt",
                "last_answer",
                "reason",
                "client",
                "task_name",
                "task_title",
                "number_name",
                "checkpoint_name",
                "missing",
                "previous",
                "by",
                "accept_unproven",
                "description",
            ),
            text,
        ),
        **{name: [row] for name in ("criteria", "todos", "evidence", "blockers", "questions", "decisions", "commits")},
        **{name: [text] for name in ("state", "completed", "changed", "errors")},
        "status": "active",
        "at": at,
        "next_at": at,
        "slug": "",
        "position": dict.fromkeys(("branch", "head", "worktree", "operation", "fingerprint"), text),
        "closed": {"at": at, "reason": text, "handover_name": text, "commits": [row], "files": [text]},
    }
    links = {
        f"{kind.letter}-0001@aaaaaa": {"kind": kind.word, "title": text, "open": True} for kind in layout.KINDS.values()
    }
    for key in ("T-0001", "D-0001", "B-0001", "Q-0001", "A-0001", "N-0001", "C-000001", "H-000001"):
        items = (
            {"criteria": item, "todos": item, "evidence": item, "completed": item, "links": links}
            if key == "T-0001"
            else {}
        )
        change = {name: value for name, value in told.items() if key[0] in "CH" or name not in ("evidence",)}
        me.say({f"{key}@aaaaaa": Change(dict(change), items)})
    waits = {"depends": {"T-0001@aaaaaa": {"live": True, "title": text}}}
    me.say({"T-0002@aaaaaa": Change({"title": text, "area": text, "slug": "", "at": at}, waits)})
    me.say({"project": Change({"title": text, "description": text, "goal": text}), "S-0123456789ab": Change(told)})
    return me.files


def plain_lines(text: str) -> list[str]:
    """The lines outside of fenced code."""
    rows, fence = [], ""
    for row in text.split("\n"):
        bare = re.sub(r"^(?:> ?)+", "", row)
        found = re.match(r"(`{3,})(\w*)$", bare)
        if not fence and found:
            fence = found[1]
        elif fence and found and found[1] == fence:
            fence = ""
        elif not fence:
            rows.append(row)
    assert not fence
    return rows


@pytest.fixture(scope="module")
def known() -> dict[str, list[str]]:
    """The headings that documents have when their texts are plain."""
    return {path: headings(data.decode()) for path, data in everything("word").items() if path.endswith(".md")}


def headings(text: str) -> list[str]:
    return [row for row in plain_lines(text) if row.startswith("## ")]


@pytest.mark.parametrize("text", HOSTILE)
def test_text_of_a_record_makes_no_heading_link_html_or_fence(text, known):
    files = everything(text)
    assert {path for path in files if path.endswith(".md")} == known.keys()
    for path in known:
        shown = files[path].decode()
        assert "not of the kind" not in shown, path
        assert headings(shown) == known[path], path
        outside = "\n".join(plain_lines(shown))
        outside = re.sub(r"(?<![\\`])(`+)(?!`)(.+?)(?<!`)\1(?!`)", "", outside)  # code spans
        assert not re.search(r"<(?!a id=\"[a-z0-9-]+\">|/a>)[a-zA-Z!/]", outside), path
        assert "](http" not in re.sub(r"\\.", "", outside), path
        assert not re.search("[\x1b\u202e\u200b]", shown), path


@given(st.text(alphabet="`\\|*_[]()<>&#~-+=!$@ \n\tab1.\r", max_size=40))
def test_prose_keeps_every_word_and_never_leaves_its_paragraphs(text):
    shown = prose(text)
    assert headings(shown) == []
    words = re.findall(r"[ab1]+", text)
    assert re.findall(r"[ab1]+", re.sub(r"&(?:lt|gt|amp);|text\n", " ", shown)) == words
    assert all(row.startswith(">") for row in said(text).split("\n")) or not said(text)


def test_times_are_shown_in_utc_and_what_is_none_is_said():
    assert when("2026-11-30T14:49:11.123Z") == "2026-11-30 14:49 UTC"
    assert when(None) == when("") == when(5) == "no time"
    assert when("soon\n# x") == "soon # x"


# ── the limit ────────────────────────────────────────────────────────────────────────────────
PARTS = [
    "word " * 9,
    "| a |",
    "é" * 99,
    "```text\n" + "row\n" * 30 + "```",
    "`````text\n```\n" + "row\n" * 20 + "`````",
]


@given(st.lists(st.sampled_from(PARTS), max_size=30), st.integers(600, 2_000))
def test_a_page_is_never_over_its_limit_and_closes_what_it_opened(parts, limit):
    data = page("# x", *parts, limit=limit)
    assert len(data) <= limit
    if len(page("# x", *parts)) > limit:
        *_, last, end = plain_lines(data.decode())
        assert re.fullmatch(r"\*Cut here: [\d,]+ of [\d,]+ bytes are left out; the record's JSON holds more\.\*", last)
        assert end == ""


def test_documents_and_records_of_huge_texts_stay_below_a_mebibyte():
    me, _ = genesis()
    key = "T-0001@aaaaaa"
    huge = "all work and no play\n" * 100_000
    me.say({key: Change({"title": "x", "slug": "", "status": "active", "at": me.at(), "goal": huge, "next": huge})})
    assert all(len(data) <= LIMIT for data in me.files.values())
    assert b"*Cut here:" in me.files["tasks/00xx/T-0001/TASK.md"] or b"[cut," in me.files["tasks/00xx/T-0001/TASK.md"]
    record = codec.read_record(me.files["tasks/00xx/T-0001/task.json"], "task.json")
    assert record.get("goal").endswith(f"… [cut, {len(huge)} characters in all]")
    assert record.get("title") == "x"


def grow(key: str, fields: dict[str, Json], items: int, stamp: int = 1) -> Record:
    listed = {f"e{n}@aaaaaa": {"text": ("note " * 40, Stamp(stamp + n, A, stamp + n))} for n in range(items)}
    record = Record(key, {name: (value, Stamp(1, A, 1)) for name, value in fields.items()})
    return Record(key, record.fields, {"evidence": listed} if listed else {})


@settings(deadline=None)
@given(
    st.dictionaries(st.sampled_from(["goal", "next", "why"]), st.integers(0, 20_000).map(lambda n: "é" * n)),
    st.lists(st.integers(0, 900).map(lambda n: "x" * n), max_size=60),
    st.integers(0, 60),
    st.integers(3_000, 9_000),
)
def test_a_cut_record_fits_is_a_record_and_says_what_was_cut(texts, state, items, limit):
    record = grow("T-0001@aaaaaa", {**texts, "state": state}, items)
    data = cut_record(record, limit)
    assert len(data) <= limit
    back = codec.read_record(data, "x")
    if len(codec.record_bytes(record)) <= limit:
        assert back == record
    else:
        assert "[cut, " in data.decode() or CUT in back.fields
    left = back.get(CUT, {}).get("evidence", 0)
    assert left + len(back.items.get("evidence", {})) == items


def test_a_record_cut_twice_is_the_record_cut_once():
    first = grow("T-0001@aaaaaa", {"goal": "é" * 30_000}, 40)
    more = grow("T-0001@aaaaaa", {}, 40, stamp=1_000)
    more = Record(more.key, more.fields, {"evidence": {f"f{k}": v for k, v in more.items["evidence"].items()}})
    whole = fold.merge(first, more)
    once = cut_record(whole, 5_000)
    again = cut_record(fold.merge(codec.read_record(cut_record(first, 5_000), "x"), more), 5_000)
    assert json.loads(once)["items"] == json.loads(again)["items"]
    assert json.loads(once)["fields"]["cut"][0] == json.loads(again)["fields"]["cut"][0]
    assert json.loads(once)["fields"]["goal"] == json.loads(again)["fields"]["goal"]


def test_the_newest_items_are_the_ones_that_stay():
    back = codec.read_record(cut_record(grow("T-0001@aaaaaa", {}, 300), 20_000), "x")
    kept = [int(re.sub(r"\D", "", item.partition("@")[0])) for item in back.items["evidence"]]
    assert sorted(kept) == list(range(min(kept), 300))
    assert back.get(CUT) == {"evidence": min(kept)}


def test_an_index_names_nothing_it_does_not_show():
    view = View(lambda path: None)
    assert "*No task is open.*" in indexes.index(view).decode()
    assert "*No decision is recorded yet.*" in indexes.decisions(view).decode()
    assert indexes.blockers(view).decode().count("*None.*") == 2
    assert anchor("D-0012@k3f9c2") == "d-0012-k3f9c2"
    assert commit({}, []) == {"manifest.json"}
    assert NEXT
