"""The five tools that a model is given: the ledger read, searched, and told of tasks and decisions.

Each is one run of the program. What comes back is data from records, as the program prints it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from gitledger.clients.embedded import Embedded, Ran

LONGEST = 20_000
"""Characters of a text that is handed back."""
ACTIONS = ("list", "show", "add", "start", "next", "todo", "evidence", "block", "unblock", "done")
_ID = "A task's id, such as T-0007; the active task where it is left out."


def _schema(name: str, description: str, required: tuple[str, ...], **given: object) -> dict[str, Any]:
    parameters = {"type": "object", "properties": given, "required": list(required)}
    return {"name": name, "description": description, "parameters": parameters}


def _text(description: str) -> dict[str, str]:
    return {"type": "string", "description": description}


SCHEMAS: tuple[dict[str, Any], ...] = (
    _schema(
        "ledger_get",
        "Read a record or a document of this project's ledger: a task, decision, blocker, question, checkpoint or "
        "handover by its id, or a document by its path.",
        ("what",),
        what=_text("An id such as T-0007, D-0012, C-000123 or H-000003, or a path such as DECISIONS.md."),
    ),
    _schema(
        "ledger_search",
        "Find words in this project's ledger: tasks, decisions, blockers, questions, checkpoints, handovers.",
        ("text",),
        text=_text("The words to find."),
        limit={"type": "integer", "description": "At most so many hits.", "minimum": 1, "maximum": 50},
    ),
    _schema(
        "ledger_task",
        "Work on the project's tasks. list; show; add (title, goal, accept); start (id, next); next (text: the one "
        "next action); todo (text, or done such as t2); evidence (candidate: a test result seen in a turn, such as r1; "
        "commit, path or claim; criterion, such as c1); block (reason); unblock; done, which needs every acceptance "
        "criterion met with evidence.",
        ("action",),
        action={"type": "string", "enum": list(ACTIONS)},
        id=_text(_ID),
        title=_text("add: what it is called."),
        goal=_text("add: what it is for."),
        accept={"type": "array", "items": {"type": "string"}, "description": "add: acceptance criteria."},
        text=_text("next, todo: what is to be done."),
        next=_text("start: its next action."),
        done=_text("todo: the to-do that is done, such as t2."),
        reason=_text("block: what stands in the way."),
        candidate=_text("evidence: a test result that was seen in a turn, such as r1."),
        commit=_text("evidence: a commit that shows it."),
        path=_text("evidence: a file that shows it."),
        claim=_text("evidence: a claim without proof; it shows as UNVERIFIED."),
        criterion=_text("evidence: the criterion it is for, such as c1."),
    ),
    _schema(
        "ledger_decide",
        "Record a decision of this project, with its reason.",
        ("title", "why"),
        title=_text("What was decided, in one line."),
        why=_text("The reason."),
        task=_text("The task it bears on; the active one where it is left out, - for none."),
        supersedes=_text("The id of the decision that it takes the place of."),
    ),
    _schema(
        "ledger_checkpoint",
        "Make a checkpoint: a signed snapshot of the active task and of where the repository stands.",
        (),
        reason=_text("Why it is made, in one word."),
    ),
)
NAMES = frozenset(schema["name"] for schema in SCHEMAS)


def call(at: Embedded | None, name: str, given: Mapping[str, Any]) -> str:
    """What a tool says, as one JSON object; where it failed, `error` holds one line on why. Never raises."""
    if at is None:
        return _json({"error": "no ledger is here: gitledger init makes one, in a git repository"})
    tool = _TOOLS.get(name)
    if tool is None:
        return _json({"error": f"no tool {name}; there are {', '.join(sorted(NAMES))}"})
    try:
        words = tool(given)
    except ValueError as e:
        return _json({"error": str(e)})
    return _json(_answer(at.run(*words), words))


def _get(given: Mapping[str, Any]) -> list[str]:
    return ["get", "--", _said(given, "what")]


def _search(given: Mapping[str, Any]) -> list[str]:
    limit = given.get("limit", 10)
    if not isinstance(limit, int) or isinstance(limit, bool) or not 1 <= limit <= 50:
        raise ValueError("limit is a number from 1 to 50")
    return ["search", "--json", "--limit", str(limit), "--", _said(given, "text")]


def _decide(given: Mapping[str, Any]) -> list[str]:
    return ["decide", *_options(given, "why", "task", "supersedes", needed="why"), "--", _said(given, "title")]


def _checkpoint(given: Mapping[str, Any]) -> list[str]:
    return ["checkpoint", "--json", *_options(given, "reason")]


def _task(given: Mapping[str, Any]) -> list[str]:
    action = _said(given, "action")
    ident = [_said(given, "id")] if given.get("id") not in (None, "") else []
    if action == "list":
        return ["task", "list", "--json"]
    if action == "show":
        return ["task", "show", "--json", "--", *ident]
    if action == "add":
        accept = given.get("accept") or []
        if not isinstance(accept, list) or not all(isinstance(one, str) for one in accept):
            raise ValueError("accept is a list of texts")
        criteria = [f"--accept={one}" for one in accept]
        return ["task", "add", *_options(given, "goal"), *criteria, "--", _said(given, "title")]
    if action == "next":
        return ["task", "next", "--", *ident, _said(given, "text")]
    if action == "todo":
        if given.get("done") not in (None, ""):
            return ["task", "todo", *_options(given, "done"), "--", *ident]
        return ["task", "todo", "--", *ident, _said(given, "text")]
    if action == "evidence":
        # No command is run for it: what runs is asked of the person by Hermes' own rules.
        words = _options(given, "candidate", "commit", "path", "claim", "criterion")
        return ["task", "evidence", *words, "--", *ident]
    if action == "block":
        return ["task", "block", *_options(given, "reason", needed="reason"), "--", *ident]
    if action == "start":
        return ["task", "start", *_options(given, "next"), "--", _said(given, "id")]
    if action in ("unblock", "done"):
        return ["task", action, "--", *ident]
    raise ValueError(f"no action {action}; there are {', '.join(ACTIONS)}")


_TOOLS: dict[str, Callable[[Mapping[str, Any]], list[str]]] = {
    "ledger_get": _get,
    "ledger_search": _search,
    "ledger_task": _task,
    "ledger_decide": _decide,
    "ledger_checkpoint": _checkpoint,
}


def _said(given: Mapping[str, Any], name: str) -> str:
    value = given.get(name)
    if not isinstance(value, str) or not value.strip() or "\0" in value:
        raise ValueError(f"{name} is missing: it is a text")
    return value


def _options(given: Mapping[str, Any], *names: str, needed: str = "") -> list[str]:
    wanted = [name for name in names if given.get(name) not in (None, "") or name == needed]
    return [f"--{name}={_said(given, name)}" for name in wanted]  # by the sign: a text may begin with a dash


def _answer(ran: Ran, words: list[str]) -> dict[str, Any]:
    if ran.status:
        error = " ".join(ran.error.split()).removeprefix("gitledger: ")
        return {"error": error[:LONGEST], **({"text": ran.text[:LONGEST]} if ran.text else {})}
    if "--json" in words:
        try:
            return {"result": json.loads(ran.text)}
        except ValueError:
            pass  # shown as it is
    if len(ran.text) > LONGEST:
        return {"text": ran.text[:LONGEST], "left_out": len(ran.text) - LONGEST}
    return {"text": ran.text}


def _json(value: Mapping[str, Any]) -> str:
    return json.dumps(value, ensure_ascii=False)
