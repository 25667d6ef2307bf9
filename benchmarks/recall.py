"""Whether a capsule holds what a request needs, over made-up histories: beside the newest records, files cut off, and
plain full-text search with the same texts, the same tokens and the same estimate.

What is counted: records that stand and belong to the task that a request is about, found by their whole title; records
that stand no more and are shown all the same; quotations in a capsule that stand in no record; and the label of a
handover against what was done to the repository since.
"""

from __future__ import annotations

import re
import shutil
import sqlite3
import weakref
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from benchmarks.clock import Row
from benchmarks.grounds import Grounds, git, hurried
from benchmarks.histories import History, Question, Said, play, questions
from gitledger import capsule, discover, fulltext, handovers, layout, objects, pins
from gitledger.authority import Assessment
from gitledger.ledger import Ledger
from gitledger.model import Oid
from gitledger.render import capsule as rendered
from gitledger.render.tokens import estimate
from gitledger.store import MemoryStore, Store

HISTORIES, FIRST = 300, 1_000
"""How many histories, and the seed of the first: none below it is in the figures, because those were looked at."""
TOKENS = (500, 1_000, 2_500)
WAYS = ("capsule", "newest records", "files cut off", "plain full text")
EXPECTED: Mapping[str, tuple[str, str]] = {
    "same": ("exact", ""),
    "ahead": ("advanced", ""),
    "behind": ("diverged", "rewound"),
    "rebased": ("diverged", "rewritten"),
    "diverged": ("diverged", "forked"),
    "dirty": ("exact", ""),
    "branch gone": ("different_context", "other branch"),
    "other worktree": ("exact", ""),
}
"""What was done to the repository since a handover, and the label and reason that it must then have."""


@dataclass(slots=True)
class Tally:
    """What many histories came to."""

    needed: int = 0
    found: Counter[tuple[str, int]] = field(default_factory=Counter)
    by_how: Counter[tuple[str, str, int]] = field(default_factory=Counter)
    needed_by_how: Counter[str] = field(default_factory=Counter)
    leaked: Counter[str] = field(default_factory=Counter)
    invented: list[str] = field(default_factory=list)
    labels: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    records: int = 0
    over: int = 0

    def share(self, way: str, tokens: int) -> float:
        """The part of what was needed that one way found within so many tokens."""
        return self.found[way, tokens] / max(self.needed, 1)

    def mislabelled(self) -> int:
        """Labels that are not what they must be."""
        return sum(n for (done, *label), n in self.labels.items() if tuple(label) != EXPECTED[done])


def rows(grounds: Grounds) -> Iterator[Row]:
    """The yardstick's rows: what each way found, what was leaked and invented, and the labels."""
    yield from table(measure(Path(grounds.folder) / "recall", HISTORIES, grounds.say, FIRST))


def table(tally: Tally) -> Iterator[Row]:
    """The rows of what was counted."""
    for tokens in TOKENS:
        ours, *theirs = (tally.share(way, tokens) for way in WAYS)
        told = ", ".join(f"{way} {share:.1%}" for way, share in zip(WAYS[1:], theirs, strict=True))
        what = f"needed records found in {tokens:,} tokens, of {tally.needed:,}"
        yield Row(what, f"{ours:.1%}", told, f"{ours - max(theirs):+.1%}", "ahead of all", ours > max(theirs))
    for how, needed in sorted(tally.needed_by_how.items()):
        shares = [f"{way} {tally.by_how[way, how, 1_000] / needed:.1%}" for way in WAYS]
        yield Row(f"… in 1,000, asked by {how}, of {needed:,}", shares[0], ", ".join(shares[1:]), "–", "–", None)
    leaks = ", ".join(f"{way} {tally.leaked[way]:,}" for way in WAYS[1:])
    yield Row(
        "records shown that stand no more", f"{tally.leaked['capsule']:,}", leaks, "–", "0", not tally.leaked["capsule"]
    )
    yield Row("quotations that stand in no record", f"{len(tally.invented):,}", "–", "–", "0", not tally.invented)
    yield Row("capsules over their budget", f"{tally.over:,}", "–", "–", "0", not tally.over)
    for done, expected in EXPECTED.items():
        seen = {" ".join(label).strip(): n for (was, *label), n in sorted(tally.labels.items()) if was == done}
        told = ", ".join(f"{label} {n}" for label, n in seen.items())
        right = set(seen) <= {" ".join(expected).strip()}
        yield Row(f"label where the repository is: {done}", told, "–", "–", " ".join(expected).strip(), right)


def measure(folder: Path, count: int, say: Callable[[str], None] = lambda text: None, first: int = 0) -> Tally:
    """Play so many histories in `folder` and ask each of them; what is left there is removed again."""
    tally = Tally()
    folder.mkdir(parents=True)
    template = folder / "template"
    git(str(folder), "init", "--quiet", "--initial-branch=main", str(template))
    for name, value in (("user.name", "Robin"), ("user.email", "robin@example.invalid"), ("gc.auto", "0")):
        git(str(template), "config", name, value)
    (template / "code.txt").write_text("one\n")
    git(str(template), "add", ".")
    git(str(template), "commit", "--quiet", "--message", "First")
    discover.init(str(template), "main", "Made up")
    for n in range(first, first + count):
        place = folder / "history"
        shutil.copytree(template, place, symlinks=True)
        _one(place, n, tally)
        shutil.rmtree(place)
        for linked in folder.glob("linked*"):
            shutil.rmtree(linked)
        if n % 50 == 49:
            say(f"{n + 1 - first} histories")
    shutil.rmtree(folder)
    return tally


def _one(place: Path, seed: int, tally: Tally) -> None:
    done = list(EXPECTED)[seed % len(EXPECTED)]
    before(done, place)
    where = str(place if done != "other worktree" else place.parent / "linked")
    opened = discover.open(where, driver="pygit2")
    store = Light(opened.desk.store)
    ledger = Ledger(replace(opened.desk, store=store), opened.gitdir)
    with hurried(opened):
        told = play(ledger, seed)
        ledger.write_handover()
    believe(ledger)
    after(done, place)
    ledger = Ledger(ledger.desk, discover.open(str(place), driver="pygit2").gitdir)
    tally.labels[(done, *label(ledger))] += 1
    tally.records += len(told.said)
    others = Others(ledger, told)
    for question in questions(told):
        _ask(ledger, told, question, others, tally)
    opened.desk.store.close()


class Light(MemoryStore):
    """A store whose new objects never reach the disk, on top of one that has the project's own and the first ones."""

    def __init__(self, below: Store) -> None:
        super().__init__(below.ref, below.algorithm)
        self._below = below
        tip = below.tip()
        if tip is not None:
            self.objects[tip] = below.get(tip)
            self.swap(tip, None, "begun elsewhere")

    def get(self, oid: Oid, *, fresh: bool = False) -> objects.Object:
        """See Store."""
        return self.objects[oid] if oid in self.objects else self._below.get(oid, fresh=fresh)

    def absent(self, oids: Iterable[Oid]) -> tuple[Oid, ...]:
        """See Store."""
        return self._below.absent(super().absent(oids))


def believe(ledger: Ledger) -> None:
    """Let this clone have verified the tip: stand-ins for signatures would be checked, and found to be none."""
    home = ledger.desk.home
    mine = pins.load(home.pins, home.name)
    if mine is not None:
        pins.save(home.pins, home.name, mine.remember(ledger.tip()))


def _ask(ledger: Ledger, told: History, question: Question, others: Others, tally: Tally) -> None:
    needed = told.of(question.task)
    facts = capsule.gather(ledger, question.text)
    tally.needed += len(needed)
    tally.needed_by_how[question.how] += len(needed)
    for tokens in TOKENS:
        made = rendered.capsule(facts, tokens)
        tally.over += made.tokens > tokens or len(made.text) > rendered.CHARS
        tally.invented += [f"{told.seed}: {text}" for text in invented(made.text, told)]
        shown = {
            "capsule": made.text,
            "newest records": cut_rows(others.newest, tokens),
            "files cut off": cut_text(others.files, tokens),
            "plain full text": cut_rows(others.found(question.text), tokens),
        }
        for way, text in shown.items():
            flat = " ".join(text.split())
            hits = sum(one.title in flat for one in needed)
            tally.found[way, tokens] += hits
            tally.by_how[way, question.how, tokens] += hits
            tally.leaked[way] += sum(not one.stands and one.title in flat for one in told.said.values())


def invented(text: str, told: History) -> list[str]:
    """What a capsule quotes and no record says."""
    known = [" ".join(one.split()).replace('"', "'") for one in (*told.texts, "Made up")]
    quotes = re.findall(r'"([^"\n]*)"?', text) + re.findall(r"^<<< .*\n((?:.*\n)*?)>>> ", text, re.MULTILINE)
    found = []
    for quoted in quotes:
        said = re.sub(r"^(?:next|goal): ", "", quoted.strip()).removesuffix("…").strip()
        said = said.removeprefix("Meet the first open criterion: ")
        if said and not any(said in one for one in known):
            found.append(quoted)
    return found


# ── the other ways ───────────────────────────────────────────────────────────────────────────
class Others:
    """What the three simple ways show of one ledger, the most wanted first."""

    def __init__(self, ledger: Ledger, told: History) -> None:
        view = ledger.view()
        records = list(told.said.values())
        self._rows = {
            one.key: self._row(view.name(one.key), one, str(view.need(one.key).get("status"))) for one in records
        }
        self.newest = [self._rows[one.key] for one in reversed(records)]
        self._database = sqlite3.connect(":memory:")
        weakref.finalize(self, self._database.close)
        self._database.execute("CREATE VIRTUAL TABLE texts USING fts5(key UNINDEXED, title, body, tokenize='porter')")
        for one in records:
            self._database.execute("INSERT INTO texts VALUES (?, ?, ?)", (one.key, one.title, one.text))
        self.files = self._files(ledger, told)

    def _row(self, name: str, one: Said, status: str) -> str:
        return f"- {name} {one.kind} ({status}): {one.title}{f' — {one.text}' if one.text else ''}"

    def found(self, text: str) -> list[str]:
        """The records that hold some of the words, the best first."""
        words = " OR ".join(f'"{word}"' for word in fulltext.read(text).words)
        found = self._database.execute("SELECT key FROM texts WHERE texts MATCH ? ORDER BY rank", (words,))
        return [self._rows[key] for (key,) in found]

    def _files(self, ledger: Ledger, told: History) -> str:
        # What somebody who wants to go on would read, in that order.
        view, tip, get = ledger.view(), ledger.tip(), ledger.desk.store.get
        own = view.folder(told.active) if told.active else None
        names = [f"{own}/TASK.md", f"{own}/STATE.md"] if own else []
        names += ["BLOCKERS.md", "DECISIONS.md", "INDEX.md", "PROJECT.md"]
        return "\n".join((objects.read(get, tip, name) or b"").decode() for name in names)


def cut_rows(lines: list[str], tokens: int) -> str:
    """As many whole lines as fit."""
    kept: list[str] = []
    for line in lines:
        if estimate("\n".join([*kept, line])) > tokens:
            break
        kept.append(line)
    return "\n".join(kept)


def cut_text(text: str, tokens: int) -> str:
    """As much of the text as fits."""
    low, high = 0, len(text)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if estimate(text[:middle]) <= tokens else (low, middle - 1)
    return text[:low].replace("\\", "")


# ── labels ───────────────────────────────────────────────────────────────────────────────────
def label(ledger: Ledger) -> tuple[str, str]:
    """Label and reason of the newest handover against the repository as it is."""
    view = ledger.view()
    here = ledger.position()
    me = ledger.desk.writer.id
    newest = layout.key_of(layout.HANDOVER, view.manifest.numbers[layout.HANDOVER.letter], me)
    found = handovers.judge(ledger, view, newest, here, Assessment("verified", frozenset((me,))))
    return found.verdict.divergence.label, found.verdict.divergence.reason


def before(done: str, place: Path) -> None:
    """Put the repository where the work is done."""
    if done == "behind":
        commit(place, "Second")
    elif done == "branch gone":
        git(str(place), "switch", "--quiet", "--create", "feature")
        commit(place, "On the feature")
    elif done == "other worktree":
        git(str(place), "worktree", "add", "--quiet", "-b", "feature", str(place.parent / "linked"))
    elif done in ("rebased", "diverged"):
        commit(place, "Work of the day")


def after(done: str, place: Path) -> None:
    """What happens to the repository after the handover."""
    if done == "ahead":
        commit(place, "Later")
    elif done == "behind":
        git(str(place), "reset", "--quiet", "--hard", "HEAD~1")
    elif done == "rebased":
        git(str(place), "commit", "--quiet", "--amend", "--message", "Work of the day, said better")
    elif done == "diverged":
        git(str(place), "reset", "--quiet", "--hard", "HEAD~1")
        commit(place, "Another way")
    elif done == "dirty":
        (place / "code.txt").write_text("changed\n")
    elif done == "branch gone":
        git(str(place), "switch", "--quiet", "main")
        git(str(place), "branch", "--quiet", "-D", "feature")
    elif done == "other worktree":
        git(str(place), "worktree", "remove", "--force", str(place.parent / "linked"))
        git(str(place), "switch", "--quiet", "feature")


def commit(place: Path, subject: str) -> None:
    """One more commit, of a file of its own."""
    (place / f"{subject}.txt").write_text(subject)
    git(str(place), "add", ".")
    git(str(place), "commit", "--quiet", "--message", subject)
