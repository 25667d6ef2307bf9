"""What belongs to the ledger as a whole: PROJECT.md, README.md, config.yaml, keys/allowed_signers. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime

from gitledger import trust
from gitledger.model import Json, Record
from gitledger.patterns import pattern
from gitledger.render.page import Link, code, facts, joined, page, prose, section, when
from gitledger.render.text import inline

_MENU = (
    "[Tasks](INDEX.md) · [Decisions](DECISIONS.md) · [Blockers and questions](BLOCKERS.md) · [Artifacts](ARTIFACTS.md)"
)
_PRINCIPAL = pattern(r"[A-Za-z0-9][A-Za-z0-9._@+-]{0,127}\Z")
_PUBLIC_KEY = pattern(r"((?:ssh-|ecdsa-|sk-)[a-z0-9@.-]{1,60}) ([A-Za-z0-9+/]{16,4000}={0,2})(?: .*)?\Z")
_PLAIN_KEY = pattern(r"[a-z][a-z0-9_-]*(?:\.[a-z][a-z0-9_-]*)*\Z")
_YAML_WORDS = frozenset(("y", "n", "yes", "no", "on", "off", "true", "false", "null"))
_UNPRINTABLE = pattern("[\x7f-\x9f\xad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff\ufff0-\uffff]")
_FAR_UNPRINTABLE = pattern("[\U000e0000-\U0010ffff]")


def project(record: Record | None, link: Link) -> bytes:
    """PROJECT.md: what the project is, and where its work stands."""
    record = record or Record("project")
    newest = record.get("checkpoint") or {}
    checkpoint = link(newest["key"]) if newest.get("key") else inline(newest.get("name", ""))
    task = f"task {inline(newest['task_name'])}" if newest.get("task_name") else ""
    return page(
        f"# {inline(record.get('title') or 'The project')}",
        _MENU,
        prose(record.get("description", "")),
        section("Goal", prose(record.get("goal", "")), "*No goal is written down.*"),
        section(
            "Newest checkpoint",
            joined(checkpoint, task, when(newest.get("at"))) if newest else "*None yet.*",
        ),
        section(
            "Ledger",
            facts(
                (
                    ("Branch", code(f"ledger/{record.get('name', '')}") if record.get("name") else ""),
                    ("Id", code(record.get("uuid", ""))),
                    ("Made", when(record.get("at")) if record.get("at") else ""),
                )
            ),
        ),
    )


def readme(record: Record | None) -> bytes:
    """README.md of the branch, for a person who meets it on a git host and knows nothing of it."""
    record = record or Record("project")
    branch = f"ledger/{re.sub(r'[^a-z0-9-]', '', str(record.get('name') or 'main'))}"
    title = inline(record.get("title") or "this project")
    return page(
        f"# The ledger of {title}",
        f"You are looking at the branch `{branch}`. It holds no code: it is the record of the work on {title} "
        "(tasks, decisions, checkpoints, handovers), written by "
        "**gitledger** while people and their coding agents work, and it shares no history with the other branches.",
        "> **Please do not merge this branch, and do not edit its files.** Each commit is signed, and every document "
        "here is rendered from the records beside it. An edit would change no record; it would only make the "
        "verification fail.",
        section(
            "Where to look",
            "| If you want to know | Open |\n|---|---|\n"
            "| what the project is and where it stands | [PROJECT.md](PROJECT.md) |\n"
            "| which tasks are open, and what comes next | [INDEX.md](INDEX.md) |\n"
            "| what was decided, and why | [DECISIONS.md](DECISIONS.md) |\n"
            "| what is in the way, and which questions wait for an answer | [BLOCKERS.md](BLOCKERS.md) |\n"
            "| which files and addresses matter | [ARTIFACTS.md](ARTIFACTS.md) |\n"
            "| every single thing that was noted, as events in order | `journal/` |",
        ),
        section(
            "Check it with stock git",
            "The newest commit's signature, against the keys that this branch carries:\n\n"
            "```sh\n"
            f"git show {branch}:keys/allowed_signers > signers\n"
            f"git -c gpg.ssh.allowedSignersFile=signers verify-commit {branch}\n"
            "```\n\n"
            "That prints the fingerprint of the key that signed. Whether to believe it is yours to decide: compare it "
            "with one you got another way. `gitledger verify` checks every commit, and that the documents say what the "
            "records say.",
        ),
        section(
            "Read it without a checkout",
            "```sh\n"
            f"git show {branch}:INDEX.md\n"
            f"git log --format='%h %ad %s' --date=short {branch}\n"
            "```\n\n"
            "In a clone with gitledger: `gitledger status`, `gitledger search TEXT`, `gitledger show T-0001`.",
        ),
        facts((("Ledger id", code(record.get("uuid", ""))),)),
    )


def allowed_signers(writers: Iterable[Record | None]) -> bytes:
    """keys/allowed_signers for ssh-keygen and git: a line for each writer's key, and for each that it had before.

    A key that was replaced or revoked stays, good for signatures of before, where the time of that is known; else it
    is left out. Stock tools go by a commit's own date; the place in the chain is what gitledger goes by.
    """
    lines = []
    for writer in writers:
        if writer is None:
            continue
        principal, ended = writer.get("principal"), trust.revocation(writer)
        if not (isinstance(principal, str) and _PRINCIPAL.match(principal)):
            continue  # anything else could be read as options of ssh-keygen's, or as a line of its own
        rows = [(row.get("public_key"), _before(row.get("until"))) for row in writer.listed("keys")]
        rows.append((writer.get("public_key"), _before(ended.get("at")) if ended else ""))
        for key, before in rows:
            found = _PUBLIC_KEY.match(key) if isinstance(key, str) else None
            if found and before is not None:
                lines.append(f'{principal} namespaces="git"{before} {found[1]} {found[2]}\n')
    return "".join(lines).encode()


def _before(at: Json) -> str | None:
    # The commit that ends a key is signed by it, a little after the event's own time.
    then = trust.milliseconds(at) if isinstance(at, str) else None
    if then is None:
        return None
    return datetime.fromtimestamp((then + trust.HOUR) // 1000, UTC).strftime(',valid-before="%Y%m%d%H%M%SZ"')


def config_yaml(fields: Mapping[str, Json]) -> bytes:
    """config.yaml: dotted keys nested two levels, values in the JSON that is also YAML; null means not set."""
    there = {key: value for key, value in fields.items() if value is not None}
    groups: dict[str, dict[str, Json]] = {}
    for key in sorted(there):
        head, _, rest = key.partition(".")
        if rest and head not in there:
            groups.setdefault(head, {})[rest] = there[key]
        else:
            groups.setdefault(key, {})[""] = there[key]
    lines = ["# The project's policy. Set with: gitledger config set KEY VALUE"]
    for head, group in groups.items():
        if "" in group:
            lines.append(f"{_yaml_key(head)}: {_yaml(group[''])}")
        else:
            lines += [f"{_yaml_key(head)}:", *(f"  {_yaml_key(rest)}: {_yaml(v)}" for rest, v in group.items())]
    return ("\n".join(lines) + "\n").encode()


def _yaml_key(key: str) -> str:
    return key if _PLAIN_KEY.match(key) and key not in _YAML_WORDS else _yaml(key)


def _yaml(value: Json) -> str:
    # JSON is YAML except where YAML wants an escape: controls, what nobody can see, and pairs of surrogates.
    text = json.dumps(value, ensure_ascii=False, sort_keys=True)
    text = _UNPRINTABLE.sub(lambda m: f"\\u{ord(m[0]):04x}", text)
    return _FAR_UNPRINTABLE.sub(lambda m: f"\\U{ord(m[0]):08x}", text)
