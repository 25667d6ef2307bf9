"""Who may import whom: every module has a layer, and imports only from lower ones.

The rules are functions over source text, so that each is also shown able to fail.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent / "gitledger"

LAYERS: tuple[frozenset[str], ...] = (
    frozenset({"digests", "errors", "model", "patterns", "typed", "values"}),
    frozenset(
        {
            "certificates",
            "codec",
            "der",
            "disguise",
            "fold",
            "keywords",
            "layout",
            "listing",
            "objects",
            "openpgp",
            "privatekeys",
            "proof",
            "redact",
            "relations",
            "render",
            "replacing",
            "results",
            "scope",
            "secrets_rules",
            "shards",
            "shims",
            "splice",
            "todo",
            "trust",
            "view",
        }
    ),
    frozenset(
        {
            "blocks",
            "bounds",
            "cms",
            "form",
            "frame",
            "gitcli",
            "gitdir",
            "gitshims",
            "identity",
            "memoryset",
            "needle",
            "pins",
            "proposal",
            "refusal",
            "schema",
            "store",
            "wiring",
            "yamlfile",
        }
    ),
    frozenset(
        {
            "fingerprint",
            "gitsigner",
            "gitstore",
            "hookfiles",
            "lock",
            "memorycheck",
            "memoryfile",
            "memoryprompt",
            "memorystate",
            "mint",
            "notify",
            "packs",
            "plumbing",
            "process",
            "program",
            "proposer",
            "proposerstate",
            "remote",
            "rewrites",
            "runs",
            "scanner",
            "schedule",
            "settingsfile",
            "signing",
            "sshsig",
            "syncing",
            "syncstate",
            "wal",
            "worktree",
        }
    ),
    frozenset(
        {
            "adopt",
            "ancestry",
            "audit",
            "authority",
            "candidates",
            "chain",
            "changeset",
            "checking",
            "contents",
            "crew",
            "derive",
            "doctor",
            "entries",
            "episode",
            "evidence",
            "examine",
            "firing",
            "folders",
            "fulltext",
            "genesis",
            "githooks",
            "guidance",
            "handovers",
            "hidden",
            "ingest",
            "install",
            "keys",
            "ledger",
            "memory",
            "memoryheld",
            "memorykept",
            "memoryrecord",
            "memoryundo",
            "merge",
            "outgoing",
            "purge",
            "reading",
            "reconcile",
            "rejournal",
            "rewriting",
            "rollover",
            "search",
            "sessions",
            "standing",
            "splitting",
            "sync",
            "tasks",
            "transaction",
            "trial",
            "verify",
        }
    ),
    frozenset(
        {
            "allowance",
            "briefing",
            "capsule",
            "capture",
            "clients",
            "config",
            "demo",
            "discover",
            "documenter",
            "probe",
            "progress",
            "prompted",
        }
    ),
    frozenset({"", "__main__", "cli", "commands", "direct", "gitevents", "hooks", "synced", "terminal"}),
)
"""The modules of each layer; a package stands for all its modules, "" for `gitledger/__init__.py`."""

PACKAGES = ("clients", "commands", "render")
"""Their modules may import each other."""

ALLOWED: dict[tuple[str, str], str] = {
    ("model", "typed"): "what the words are said to be",
    ("model", "values"): "what the words are made by",
    ("certificates", "der"): "a certificate's form is that of its elements",
    ("keywords", "secrets_rules"): "what may be a value is judged for the rules that found it",
    ("objects", "redact"): "a tree is made of clean bytes alone",
    ("render", "redact"): "no name is made of a text that was not read, and a tree is made of clean bytes alone",
    ("redact", "certificates"): "a certificate is public, and is told by its form",
    ("redact", "openpgp"): "a public key is public, and is told by its form",
    ("redact", "keywords"): "what may be a value is judged by what it looks like",
    ("redact", "replacing"): "a text is clean once every rule has read it",
    ("replacing", "disguise"): "a text is read as it is meant",
    ("replacing", "keywords"): "what may be a value is judged by what it looks like",
    ("replacing", "privatekeys"): "the rules' table, the keys' blocks and the judgement make one answer",
    ("replacing", "secrets_rules"): "the rules' table, the keys' blocks and the judgement make one answer",
    ("fold", "layout"): "the kinds of records say how their fields merge",
    ("fold", "codec"): "equal values are told by their canonical bytes",
    ("view", "codec"): "a view reads records from their bytes",
    ("view", "fold"): "a view is the records with the newest events folded on top",
    ("view", "layout"): "a view knows where a record lies",
    ("view", "listing"): "a view reads the tree's lists",
    ("view", "shards"): "a view's rows",
    ("shards", "listing"): "rows are checked as they are read",
    ("shards", "layout"): "rows lie in shards by their number",
    ("shards", "codec"): "lists are read from bytes",
    ("listing", "layout"): "a list names records by their keys",
    ("render", "codec"): "a record is cut by what its canonical bytes measure",
    ("render", "view"): "indexes and briefings are rendered from a view",
    ("relations", "layout"): "tasks are listed by their kind",
    ("relations", "view"): "which task waits for which stands in index rows",
    ("render", "relations"): "the map of tasks says who waits for whom",
    ("render", "todo"): "a task's documents list its to-dos",
    ("todo", "proof"): "to-dos are named as criteria are",
    ("render", "shards"): "lists are rendered from index rows",
    ("render", "layout"): "documents link to each other by the paths of the tree",
    ("render", "trust"): "the signers file says until when a key counts",
    ("render", "proof"): "a document says whether a proof still holds",
    ("proposal", "bounds"): "a type from outside says its bounds",
    ("schema", "bounds"): "a type from outside says its bounds",
    ("schema", "proposal"): "the border reads change sets; their types stand apart, so that only those pay for them",
    ("trust", "layout"): "whose record a writer's is stands in its key",
    ("identity", "gitdir"): "it lies among the clone's local files",
    ("pins", "gitdir"): "it lies among the clone's local files",
    ("identity", "pins"): "it is written as the trust list is: atomically, for its owner alone",
    ("scope", "layout"): "what a record's key may change is told by where its files lie",
    ("sshsig", "signing"): "what is not checked in process is checked by ssh-keygen, by the same form of key",
    ("gitsigner", "signing"): "it signs as one more signer does",
    ("plumbing", "packs"): "what a put stores is a pack of its own",
    ("worktree", "fingerprint"): "a position holds a fingerprint",
    ("splitting", "tasks"): "a new task is made as any other",
    ("guidance", "install"): "what was done with a file is said in the same words",
    ("entries", "tasks"): "the other records belong to tasks, and share their hand",
    ("derive", "tasks"): "what a checkpoint says of a task is read by the task's own rules",
    ("transaction", "ingest"): "a transaction begins with what the log holds",
    ("authority", "transaction"): "what is verified is what a transaction wrote, by the same desk",
    ("genesis", "transaction"): "the first commit is a transaction like any other",
    ("keys", "transaction"): "a change of keys is a plan for a transaction",
    ("genesis", "tasks"): "the project's record is made by the same rules",
    ("sessions", "derive"): "an end derives its handover",
    ("sessions", "tasks"): "a session's facts are a task's",
    ("sessions", "transaction"): "an end is a plan for a transaction",
    ("adopt", "genesis"): "what is taken over is begun here as its founder began it",
    ("adopt", "transaction"): "what is verified is what a transaction wrote, by the same desk",
    ("adopt", "verify"): "a ledger is verified before it is taken over",
    ("ledger", "derive"): "the ledger joins the modules of its layer into one surface",
    ("ledger", "standing"): "the ledger joins the modules of its layer into one surface",
    ("changeset", "checking"): "what finishes a task proves something here",
    ("checking", "authority"): "whose evidence counts is told by whom this clone believes",
    ("checking", "evidence"): "what is run again is recorded as it was gathered first",
    ("checking", "ledger"): "a ledger is checked through itself",
    ("checking", "tasks"): "evidence is given by the task's own rules",
    ("runs", "rewrites"): "one more local file that is added to and stays bounded",
    ("proof", "results"): "what a run printed is said with what it proves",
    ("ledger", "ingest"): "the ledger joins the modules of its layer into one surface",
    ("ledger", "sessions"): "the ledger joins the modules of its layer into one surface",
    ("ledger", "tasks"): "the ledger joins the modules of its layer into one surface",
    ("ledger", "transaction"): "the ledger joins the modules of its layer into one surface",
    ("allowance", "capture"): "where the ledger's log is broken, the hooks' log still tells",
    ("allowance", "discover"): "the permission is journalled where the ledger can be opened at all",
    ("clients", "briefing"): "a start is answered with the briefing",
    ("clients", "capture"): "a failure at a start goes into the same log",
    ("rollover", "ledger"): "advice is given of a ledger, and journalled in it",
    ("rollover", "sessions"): "which session asks is told by the sessions' own rules",
    ("rollover", "tasks"): "it writes by the hand that all steps share",
    ("schema", "memoryset"): "the border reads memory files' change sets in the same way",
    ("memoryset", "bounds"): "a type from outside says its bounds",
    ("memoryprompt", "memorycheck"): "what a proposer is told are the rules that its answer is held against",
    ("memoryrecord", "tasks"): "it is written by the hand that all steps share",
    ("memory", "ledger"): "a change is told by the ledger's transaction",
    ("memory", "memorykept"): "a change is kept before it is made",
    ("memory", "memoryrecord"): "what is about to be done is kept in the form in which it is told",
    ("memory", "sessions"): "it is said within the session that is open",
    ("memory", "transaction"): "it is a plan for a transaction",
    ("memoryheld", "ledger"): "a proposal waits beside the ledger that it is for",
    ("memoryheld", "memory"): "it is for a memory file as it is now",
    ("memoryheld", "memorykept"): "it lies beside what is kept of a change",
    ("memorykept", "ledger"): "a change is kept beside the ledger that is to tell of it",
    ("memorykept", "memoryrecord"): "and in the form in which it is told",
    ("memoryundo", "memorykept"): "bytes that may not travel are kept on the machine that made the change",
    ("memoryundo", "authority"): "text of a writer that nobody here trusts is put into no file",
    ("memoryundo", "ledger"): "what was changed is read through the ledger",
    ("memoryundo", "memory"): "taking back is one more change",
    ("memoryundo", "memoryrecord"): "what was changed is read from its record",
    ("reading", "ledger"): "a ledger is read through itself",
    ("reading", "transaction"): "what is pending is folded as a transaction would",
    ("search", "ledger"): "a ledger is searched through itself",
    ("fulltext", "ledger"): "an index follows its ledger",
    ("fulltext", "search"): "without an index the records are looked through as a search does",
    ("purge", "fulltext"): "what a ledger forgets is in no index of it",
    ("capsule", "briefing"): "a capsule says more of the moment that a briefing looks at",
    ("clients", "prompted"): "a prompt is answered with what has changed",
    ("clients", "capsule"): "whoever writes a summary is given the capsule",
    ("prompted", "capsule"): "what a prompt is given is a capsule",
    ("search", "reading"): "what is searched is read in the same way",
    ("authority", "verify"): "a briefing is checked by the same rules as everything else",
    ("audit", "ledger"): "a ledger is audited through itself",
    ("audit", "reading"): "what is audited is read in the same way",
    ("chain", "examine"): "what a commit says by itself is held against what came before",
    ("chain", "reading"): "where the journals of a verified tip end is read as they are",
    ("contents", "audit"): "a tip is what its journals make, by the same rebuild as fsck's",
    ("contents", "reading"): "and is compared file by file",
    ("crew", "contents"): "the tip is compared by one process while others look at commits",
    ("crew", "examine"): "what the processes do is look at commits",
    ("examine", "folders"): "a commit is looked at by what its tree has that its parent's has not",
    ("examine", "audit"): "a merge is what folding its parents' journals makes",
    ("verify", "chain"): "the walk joins the modules of verification",
    ("verify", "contents"): "the walk joins the modules of verification",
    ("verify", "crew"): "the walk joins the modules of verification",
    ("verify", "examine"): "the walk joins the modules of verification",
    ("verify", "hidden"): "the walk joins the modules of verification",
    ("verify", "reading"): "a finding names the writer as the commit's trailers do",
    ("purge", "reading"): "what a commit holds is read as anybody reads it",
    ("purge", "rewriting"): "looking, writing anew and letting go are one command",
    ("purge", "transaction"): "its commits are signed by the same key in the same way",
    ("contents", "folders"): "what it compares is read by its own bytes, each hashed again",
    ("rewriting", "folders"): "what was written anew is read back as verification reads",
    ("rewriting", "contents"): "what was written anew is what its journal makes",
    ("rewriting", "ingest"): "what is written anew goes through the rules again",
    ("rewriting", "reading"): "what a commit holds is read as anybody reads it",
    ("rewriting", "transaction"): "its commits are made as all others are",
    ("verify", "transaction"): "what is verified is what a transaction wrote, by the same desk",
    ("changeset", "derive"): "its checkpoint is derived, with what the change set says",
    ("changeset", "entries"): "its updates are the steps that commands take",
    ("changeset", "evidence"): "a commit or a file that it names must exist",
    ("changeset", "ingest"): "each update is checked on top of those before",
    ("changeset", "ledger"): "it is applied by the ledger's transaction",
    ("changeset", "sessions"): "it is said within the session that is open",
    ("changeset", "tasks"): "its updates are the steps that commands take",
    ("changeset", "transaction"): "it is a plan for a transaction",
    ("derive", "episode"): "what a session remembers is what its checkpoint says of it",
    ("documenter", "briefing"): "a proposer is told what a session is told",
    ("documenter", "capture"): "what goes wrong behind a turn's end is a line in the hooks' log",
    ("episode", "ingest"): "no more of a text is remembered than may be journalled",
    ("doctor", "firing"): "which hooks fired is part of a ledger's set-up",
    ("doctor", "install"): "which hooks are wired is part of a ledger's set-up",
    ("firing", "ledger"): "when a hook fired is told by the ledger",
    ("firing", "reading"): "when a hook fired is told by the journal",
    ("probe", "capture"): "what a hook is taken for is found as its capture finds it",
    ("doctor", "trial"): "whether Codex runs its hooks is Codex' to say",
    ("trial", "install"): "what is tried is what is installed",
    ("doctor", "ledger"): "a ledger's set-up is looked at through itself",
    ("syncing", "syncstate"): "what came of a sync is kept as it was found",
    ("merge", "audit"): "a merge is what folding both sides' journals makes",
    ("merge", "reading"): "what each side said is read from its journal",
    ("reconcile", "examine"): "what verification has read is what a merge is made of",
    ("merge", "folders"): "two sides' trees are compared folder by folder",
    ("reconcile", "ancestry"): "what is new is what is verified",
    ("reconcile", "ledger"): "a clone's side is its ledger",
    ("reconcile", "merge"): "verifying, merging and pushing are one step",
    ("sync", "ancestry"): "what is accepted is said in commits",
    ("sync", "ledger"): "what is pending here is committed before it is pushed",
    ("sync", "reconcile"): "what was fetched is brought together with what is here",
    ("sync", "transaction"): "what is pending is committed as all else is",
    ("rejournal", "genesis"): "a copy joins as any other clone does",
    ("rejournal", "ledger"): "it is one ledger's clone that goes on",
    ("rejournal", "reading"): "what was said is read from the journal",
    ("rejournal", "transaction"): "it is said again by a transaction",
    ("outgoing", "reading"): "what is to be pushed is read from the journal",
    ("outgoing", "transaction"): "an event is looked through as it was when it was written",
    ("reconcile", "outgoing"): "what is pushed was looked through before",
    ("reconcile", "rejournal"): "a copied clone goes on as a new writer in the course of a sync",
    ("reconcile", "transaction"): "a merge is signed as all other commits are",
    ("reconcile", "verify"): "what comes from a remote is verified before it is taken in",
    ("handovers", "authority"): "a handover is shown with what its signature is worth",
    ("handovers", "ledger"): "handovers are read through the ledger",
    ("doctor", "githooks"): "whether git still calls its hooks is looked at as they are put in",
    ("discover", "clients"): "the one place that hands the adapters to the ledger",
    ("discover", "config"): "the one place that reads configuration for the ledger",
    ("__main__", "cli"): "the program's entry",
    ("__main__", "gitevents"): "what a git hook asks for does not wait for click",
    ("__main__", "direct"): "what a session waits for does not wait for click",
    ("__main__", "hooks"): "what a session waits for does not wait for click",
    ("__main__", "terminal"): "what a session waits for does not wait for click",
    ("cli", "terminal"): "errors are said and streams kept in one place",
    ("commands", "direct"): "the command is the same call with its words parsed",
    ("direct", "hooks"): "what a session waits for does not wait for click",
    ("direct", "synced"): "what cron runs all day does not wait for click",
    ("direct", "terminal"): "what is printed goes the same way as all output",
    ("commands", "synced"): "the command is the same call with its words parsed",
    ("synced", "terminal"): "it counts as all that is told does",
    ("commands", "terminal"): "what a command prints goes the same way as all output",
    ("commands", "hooks"): "the command is the same call with its words parsed",
    ("hooks", "terminal"): "what a hook says goes the same way as all output",
    ("commands", "cli"): "commands share the context that the command line makes",
}
"""Imports within one layer, each with its reason."""

STARTS_PROGRAMS = frozenset(
    {
        "clients.embedded",
        "clients.guest",
        "clients.hermes.cli",
        "clients.hermes.setup",
        "clients.nanobot.setup",
        "commands",
        "demo",
        "evidence",
        "gitcli",
        "gitsigner",
        "plumbing",
        "process",
        "proposer",
        "scanner",
        "schedule",
        "signing",
        "trial",
    }
)
KNOWS_LIBGIT2 = frozenset({"gitstore"})
SPEAKS = frozenset({"cli", "commands", "capture", "terminal", "__main__"})
KNOWS_CLICK = frozenset({"cli", "commands"})
EXPORTED = ("__version__", "open")
"""What `gitledger/__init__.py` itself offers; any other name imported from there is a module."""
HOSTED = {
    "clients.embedded": "",
    "clients.hermes": "agent hermes_cli hermes_state",
    "clients.nanobot": "nanobot",
    "clients.tools": "",
}
"""What runs within another program's process, with all its modules, and that program's own modules."""
OUR_OWN = frozenset(
    {
        "clients.hermes.adapter",
        "clients.hermes.settings",
        "clients.hermes.setup",
        "clients.nanobot.adapter",
        "clients.nanobot.setup",
    }
)
"""Modules of those packages that only our own program loads."""
LIGHT = frozenset(
    {
        "capture",
        "clients",
        "digests",
        "errors",
        "frame",
        "gitdir",
        "model",
        "pins",
        "program",
        "shims",
        "typed",
        "values",
        "wal",
    }
)
"""What else of ours they may import as they are loaded: none of these imports more than the standard library either."""
STANDARD = sys.stdlib_module_names | {"_sha2", "_sha256"}
"""The standard library, with the names that a part of it has in one version of Python or the other."""
HEAVY = frozenset({"click", "cryptography", "pydantic", "pygit2", "yaml"})
PURE = 1
"""Up to this layer only the standard library and lower modules of ours are imported."""


# ── the rules ────────────────────────────────────────────────────────────────────────────────
def group(module: str) -> str:
    """What stands for a module in the tables: its package where that is one of PACKAGES, else itself."""
    head = module.partition(".")[0]
    return head if head in PACKAGES else module


def layer(module: str) -> int | None:
    """The layer of a module, or None where the table does not place it."""
    return next((n for n, names in enumerate(LAYERS) if group(module) in names), None)


def imports(source: str, module: str, known: frozenset[str]) -> Iterator[tuple[str, int]]:
    """(name, line) of all imports, inside functions and `if TYPE_CHECKING:` as well; ours come as `gitledger.x`."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name, node.lineno
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                above = ["gitledger", *module.split(".")][: -node.level]
                base = ".".join([*above, *([base] if base else [])])
            for alias in node.names:
                inner = f"{base}.{alias.name}"
                ours = base == "gitledger" and alias.name not in EXPORTED
                yield (inner if ours or inner.removeprefix("gitledger.") in known else base), node.lineno


def faults(module: str, source: str, known: frozenset[str]) -> list[str]:
    """Every broken rule of one module, as `module:line: what`."""
    here = layer(module)
    if here is None:
        return [f"{module}: has no layer: place it in LAYERS of tests/test_layers.py"]
    found = []
    for name, line in imports(source, module, known):
        at = f"{module}:{line}"
        if name == "gitledger":
            continue  # one of EXPORTED
        if name.startswith("gitledger."):
            found += [f"{at}: {fault}" for fault in inward(module, here, name.removeprefix("gitledger."))]
        else:
            found += [f"{at}: {fault}" for fault in outward(module, here, name.partition(".")[0])]
    if group(module) not in SPEAKS:
        found += [f"{module}:{line}: {what}" for what, line in speech(source)]
    return found


def at_once(source: str) -> str:
    """What of a module's source runs as it is loaded: without functions, and without what only a type checker reads."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        for name in ("body", "orelse", "handlers", "finalbody"):
            rows = getattr(node, name, None)
            if isinstance(rows, list):
                kept = [row for row in rows if not isinstance(row, ast.FunctionDef | ast.AsyncFunctionDef)]
                if isinstance(node, ast.If) and name == "body" and "TYPE_CHECKING" in ast.unparse(node.test):
                    kept = []
                setattr(node, name, kept or ([ast.Pass()] if name == "body" else []))
    return ast.unparse(tree)


def host(module: str) -> frozenset[str] | None:
    """What of others a module may import as it is loaded in another program's process; None for a module of our own."""
    if module in OUR_OWN:
        return None
    names = next((names for head, names in HOSTED.items() if f"{module}.".startswith(f"{head}.")), None)
    return None if names is None else frozenset(names.split()) | STANDARD


def weight(module: str, source: str, known: frozenset[str]) -> list[str]:
    """What a module that runs in another program's process imports as it is loaded, and may not."""
    theirs = host(module)
    if theirs is None:
        return []
    found = []
    for name, _ in imports(at_once(source), module, known):
        ours = name.removeprefix("gitledger.")
        light = name == "gitledger" or ours in LIGHT or host(ours) is not None
        if not (light if name.startswith("gitledger") else name.partition(".")[0] in theirs):
            found.append(f"{module}: imports {ours} as it is loaded in another program's process: see LIGHT")
    return found


def inward(module: str, here: int, other: str) -> Iterator[str]:
    """What is wrong with importing one of ours."""
    there = layer(other)
    pair = (group(module), group(other))
    if there is None:
        yield f"imports {other}, which has no layer"
    elif there > here:
        yield f"imports {other} of layer {there} from layer {here}"
    elif there == here and pair[0] != pair[1] and pair not in ALLOWED:
        yield f"imports {other} of its own layer {here}: list the pair in ALLOWED, with a reason"


def outward(module: str, here: int, top: str) -> Iterator[str]:
    """What is wrong with importing something that is not ours."""
    if top == "pygit2" and module not in KNOWS_LIBGIT2:
        yield "imports pygit2, which only gitstore may"
    if top == "subprocess" and not {module, group(module)} & STARTS_PROGRAMS:
        yield "imports subprocess: git is run by gitcli, other programs by the modules in STARTS_PROGRAMS"
    if top == "click" and group(module) not in KNOWS_CLICK:
        yield "imports click, which only the command line may"
    if here <= PURE and top not in STANDARD:
        yield f"imports {top}: layers up to {PURE} stand on the standard library"


def speech(source: str) -> Iterator[tuple[str, int]]:
    """(what, line) wherever source prints, or ends the process."""
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Call(func=ast.Name(id="print")):
                yield "prints: return the text, the command line prints it", node.lineno
            case ast.Name(id="SystemExit" | "exit" | "quit", ctx=ast.Load()):
                yield "ends the process: raise an error of errors.py", node.lineno
            case (
                ast.Attribute(value=ast.Name(id="sys"), attr="exit")
                | ast.Attribute(value=ast.Name(id="os"), attr="_exit" | "abort")
            ):
                yield "ends the process: raise an error of errors.py", node.lineno
            case ast.ImportFrom(module="sys", names=names) if any(name.name == "exit" for name in names):
                yield "ends the process: raise an error of errors.py", node.lineno


# ── the package ──────────────────────────────────────────────────────────────────────────────
def modules() -> dict[str, str]:
    """Module name (without `gitledger.`, "" for the package itself) to source."""
    found = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(PACKAGE).with_suffix("").parts
        if parts[:2] == ("clients", "plugins"):
            continue  # texts that are put into another program's folders
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path.read_text()
    return found


SOURCES = modules()
KNOWN = frozenset(SOURCES)


@pytest.mark.parametrize("module", SOURCES)
def test_a_module_keeps_every_rule(module: str) -> None:
    assert faults(module, SOURCES[module], KNOWN) == []


@pytest.mark.parametrize("module", [name for name in SOURCES if host(name) is not None or name in LIGHT])
def test_what_runs_in_another_programs_process_is_light(module: str) -> None:
    assert weight(module if host(module) else "clients.embedded", SOURCES[module], KNOWN) == []


def test_another_programs_process_is_given_nothing_heavy_by_loading_what_runs_there() -> None:
    hosted = sorted(f"gitledger.{name}" for name in SOURCES if host(name) is not None)
    theirs = sorted({name for names in HOSTED.values() for name in names.split()})
    code = (
        "import importlib, sys\n"
        "for name in sys.argv[3:]:\n"
        "    try:\n"
        "        importlib.import_module(name)\n"
        "    except ModuleNotFoundError as e:\n"
        "        assert e.name.partition('.')[0] in sys.argv[2].split(), e\n"
        "print(*sys.modules)\n"
    )
    words = [sys.executable, "-P", "-c", f"import sys; sys.path.insert(0, sys.argv[1])\n{code}"]
    done = subprocess.run(
        [*words, str(PACKAGE.parent), " ".join(theirs), *hosted], capture_output=True, check=True, timeout=60
    )
    loaded = set(done.stdout.decode().split())
    assert "gitledger.clients.embedded" in loaded
    assert not loaded & HEAVY
    assert {name for name in loaded if name.startswith("gitledger.")} <= {
        *hosted, *(f"gitledger.{name}" for name in LIGHT)
    }  # fmt: skip


def test_no_module_stands_in_two_layers() -> None:
    assert sum(map(len, LAYERS)) == len(frozenset().union(*LAYERS))


def test_every_exception_is_within_one_layer_has_a_reason_and_is_used() -> None:
    used = {
        (group(module), group(name.removeprefix("gitledger.")))
        for module, source in SOURCES.items()
        for name, _ in imports(source, module, KNOWN)
        if name.startswith("gitledger.")
    }
    for pair, reason in ALLOWED.items():
        assert layer(pair[0]) == layer(pair[1]), pair
        assert reason, pair
        assert pair in used, f"{pair} is not needed any more"


def test_no_two_modules_import_each_other() -> None:
    """Groups, not files: a ring between packages is a ring."""
    edges = set(ALLOWED)
    reached = {a: {b for x, b in edges if x == a} for a, _ in edges}
    for _ in reached:
        for goals in reached.values():
            goals.update(*(reached.get(goal, set()) for goal in tuple(goals)))
    assert [a for a, goals in reached.items() if a in goals] == []


# ── each rule can fail ───────────────────────────────────────────────────────────────────────
TOY = frozenset({"", "errors", "codec", "layout", "fold", "gitstore", "ledger", "render", "render.text", "stray"})


@pytest.mark.parametrize(
    ("module", "source", "words"),
    [
        ("stray", "", "place it in LAYERS"),
        ("errors", "from gitledger import codec", "layer 1 from layer 0"),
        ("errors", "from gitledger.codec import x", "layer 1 from layer 0"),
        ("errors", "import gitledger.codec", "layer 1 from layer 0"),
        ("errors", "from .codec import x", "layer 1 from layer 0"),
        ("errors", "from . import codec", "layer 1 from layer 0"),
        ("render.text", "from ..ledger import x", "layer 4 from layer 1"),
        ("codec", "def f():\n    from gitledger import ledger", "codec:2: imports ledger"),
        ("codec", "if TYPE_CHECKING:\n    from gitledger.ledger import Ledger", "layer 4 from layer 1"),
        ("codec", "from gitledger import layout", "list the pair in ALLOWED"),
        ("codec", "from gitledger import stray", "which has no layer"),
        ("codec", "from gitledger import not_there_yet", "which has no layer"),
        ("ledger", "import pygit2.enums", "only gitstore may"),
        ("ledger", "def f():\n    import subprocess", "imports subprocess"),
        ("ledger", "from subprocess import run", "imports subprocess"),
        ("ledger", "import click", "only the command line may"),
        ("codec", "import yaml", "stand on the standard library"),
        ("ledger", "print('x')", "prints"),
        ("ledger", "import sys\nsys.exit(1)", "ledger:2: ends the process"),
        ("ledger", "raise SystemExit", "ends the process"),
        ("ledger", "from sys import exit as leave", "ends the process"),
        ("ledger", "import os\nos._exit(1)", "ends the process"),
    ],
)
def test_a_broken_rule_is_found(module: str, source: str, words: str) -> None:
    found = faults(module, source, TOY)
    assert len(found) == 1
    assert words in found[0]


@pytest.mark.parametrize(
    ("module", "source", "names"),
    [
        ("clients.embedded", "import json\nfrom gitledger import capture, wal", ""),
        ("clients.embedded", "def f():\n    from gitledger import schema\n    import yaml", ""),
        ("clients.embedded", "if TYPE_CHECKING:\n    from gitledger.model import Json", ""),
        ("clients.embedded", "from gitledger import schema", "schema"),
        ("clients.embedded", "from gitledger.schema import Config", "schema"),
        ("clients.embedded", "try:\n    import yaml\nexcept ImportError:\n    import click", "yaml click"),
        ("clients.embedded", "class C:\n    import pydantic", "pydantic"),
        ("clients.embedded", "import nanobot", "nanobot"),
        ("clients.nanobot.journal", "import nanobot.agent\nfrom gitledger.clients.embedded import find", ""),
        ("clients.hermes.adapter", "from gitledger import schema", ""),
    ],
)
def test_what_is_too_heavy_for_another_programs_process_is_found(module: str, source: str, names: str) -> None:
    known = frozenset({"", "capture", "clients", "clients.embedded", "schema", "wal"})
    assert [fault.split()[2] for fault in weight(module, source, known)] == names.split()


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("codec", "import json, hashlib\nfrom gitledger import errors\nfrom gitledger.errors import BadData"),
        ("fold", "from gitledger import codec, layout"),
        ("render.text", "from gitledger.render import text\nfrom gitledger import __version__"),
        ("gitstore", "import pygit2"),
        ("gitcli", "import subprocess"),
        ("cli", "import click, sys\nprint('x')\nsys.exit(2)"),
        ("ledger", "sprint = self.print\nfingerprint(1)"),
    ],
)
def test_what_keeps_the_rules_is_let_through(module: str, source: str) -> None:
    assert faults(module, source, TOY) == []
