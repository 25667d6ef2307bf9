"""Test results as test tools print them: pytest, unittest, jest, vitest, go test, cargo test, nextest, JUnit's XML.

What is read here was printed by anybody: it is a candidate for evidence and never evidence. Every reader takes one
look at each line, so that the work is linear in what is given, and what is given is bounded. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from gitledger.model import Json
from gitledger.values import dataclass

READ = 1 << 18
"""Characters of an output that are read: its end, where results stand."""
XML_READ = 1 << 22
LINE = 2_000
"""Characters of one line that are looked at; a summary is shorter."""
MOST = 1_000_000_000
"""A count above this is none."""
KEPT = 4
"""Results of one output that are kept."""

_ESCAPES = r"\x1b\[[0-9;?]*[A-Za-z]"
_DIGITS = "0123456789"


@dataclass(frozen=True, slots=True)
class Result:
    """What one tool counted; `unit` is what it counts, `tests`, or `packages` where it does not say more."""

    tool: str
    passed: int = 0
    failed: int = 0
    skipped: int = 0
    unit: str = "tests"

    def value(self) -> dict[str, Json]:
        """As JSON."""
        return {
            "tool": self.tool,
            "passed": self.passed,
            "failed": self.failed,
            "skipped": self.skipped,
            "unit": self.unit,
        }


def words(value: Json) -> str:
    """`pytest: 12 passed, 1 failed`, of a result as JSON; "" for what is none."""
    if not isinstance(value, dict) or not isinstance(value.get("tool"), str):
        return ""
    counts = {name: value.get(name) for name in ("passed", "failed", "skipped")}
    told = [f"{n:,} {name}" for name, n in counts.items() if type(n) is int and n > 0]
    unit = f" {value['unit']}" if value.get("unit") == "packages" else ""
    return f"{value.get('tool')}: {', '.join(told) or 'nothing ran'}{unit}"


def read(output: str) -> tuple[Result, ...]:
    """The results that an output holds, at most one of each tool; none is the usual answer."""
    found = [one for one in (xml(output),) if one]
    text = output[-READ:]
    if any(mark in text for mark in _MARKS):
        import re  # whoever only says what a run counted compiles nothing

        bare = re.compile(_ESCAPES).sub if "\x1b" in text else lambda _, line: line
        lines = [bare("", line[:LINE]).rstrip() for line in text.split("\n")]
        found += [one for reader in _READERS if (one := reader(lines)) is not None]
    return tuple(found[:KEPT])


# ── one reader for each tool ─────────────────────────────────────────────────────────────────
def _pytest(lines: list[str]) -> Result | None:
    for line in reversed(lines):
        # `== 1 failed, 2 passed, 1 warning in 0.12s ==`, with -q without the signs
        counts, _, took = line.strip("= ").partition(" in ")
        if took[:1] in _DIGITS and took[:1] and ("s" in took[:14]):
            if counts == "no tests ran":
                return Result("pytest")
            if (n := _counts(counts.split(", "), _OF_PYTEST)) is not None:
                return Result("pytest", *n)
    return None


_OF_PYTEST = {
    "passed": 0, "xpassed": 0, "failed": 1, "error": 1, "errors": 1, "skipped": 2, "xfailed": 2,
    "deselected": None, "warning": None, "warnings": None, "rerun": None, "subtests passed": None,
}  # fmt: skip


def _unittest(lines: list[str]) -> Result | None:
    for n in range(len(lines) - 1, -1, -1):
        words = lines[n].split(" ")
        if lines[n].startswith("Ran ") and len(words) >= 5 and words[2] in ("test", "tests") and words[3] == "in":
            ran = _number(words[1])
            # After it an empty line, then the verdict.
            verdict = next((line for line in lines[n + 1 : n + 4] if line), "")
            word, _, rest = verdict.partition(" (")
            if ran is None or word not in ("OK", "FAILED", "NO TESTS RAN"):
                continue
            counted: dict[str, int] = {}
            for part in rest.rstrip(")").split(", ") if rest else ():
                name, _, count = part.partition("=")
                counted[name] = _number(count) or 0
            failed = sum(counted.get(name, 0) for name in ("failures", "errors", "unexpected successes"))
            skipped = counted.get("skipped", 0) + counted.get("expected failures", 0)
            return Result("unittest", max(ran - failed - skipped, 0), failed, skipped)
    return None


def _jest(lines: list[str]) -> Result | None:
    for line in reversed(lines):
        if line.startswith("Tests:") and line.endswith(" total"):
            parts = line[6:].strip().split(", ")
            n = _counts(parts, {"passed": 0, "failed": 1, "skipped": 2, "todo": 2, "total": None})
            if n is not None:
                return Result("jest", *n)
    return None


def _vitest(lines: list[str]) -> Result | None:
    for line in reversed(lines):
        bare = line.strip()
        if bare.startswith("Tests  ") and bare.endswith(")"):
            parts = bare[5:].rpartition("(")[0].strip().split(" | ")
            n = _counts(parts, {"passed": 0, "failed": 1, "skipped": 2, "todo": 2, "expected fail": 0})
            if n is not None:
                return Result("vitest", *n)
    return None


def _go(lines: list[str]) -> Result | None:
    tests = {"PASS": 0, "FAIL": 0, "SKIP": 0}
    packages = {"ok": 0, "FAIL": 0, "?": 0}
    streamed = {"pass": 0, "fail": 0, "skip": 0}
    for line in lines:
        if line.startswith("--- "):
            word, _, rest = line[4:].partition(": ")
            if word in tests and rest.endswith("s)"):
                tests[word] += 1
        elif line.startswith(("ok  \t", "FAIL\t", "?   \t")):
            packages[line.partition("\t")[0].strip()] += 1
        elif line.startswith('{"') and '"Action":' in line and (action := _go_action(line)):
            streamed[action] += 1
    if any(streamed.values()):
        return Result("go test", streamed["pass"], streamed["fail"], streamed["skip"])
    if not packages["ok"] + packages["FAIL"]:
        return None
    if tests["PASS"]:
        return Result("go test", tests["PASS"], tests["FAIL"], tests["SKIP"])
    return Result("go test", packages["ok"], packages["FAIL"], packages["?"], "packages")


def _go_action(line: str) -> str | None:
    import json  # a hook that reads no such line does not pay for it

    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return None
    action = value.get("Action") if isinstance(value, dict) and isinstance(value.get("Test"), str) else None
    return action if action in ("pass", "fail", "skip") else None


def _cargo(lines: list[str]) -> Result | None:
    total = Result("cargo test")
    seen = False
    for line in lines:  # one line for each test binary
        if line.startswith(("test result: ok. ", "test result: FAILED. ")):
            parts = [part for part in line.partition(". ")[2].split("; ") if part[:1] in _DIGITS]
            n = _counts(parts, {"passed": 0, "failed": 1, "ignored": 2, "measured": None, "filtered out": None})
            if n is not None:
                seen = True
                total = Result("cargo test", total.passed + n[0], total.failed + n[1], total.skipped + n[2])
    return total if seen else None


def _nextest(lines: list[str]) -> Result | None:
    for line in reversed(lines):
        bare = line.strip()
        if bare.startswith("Summary [") and (" tests run: " in bare or " test run: " in bare):
            parts = bare.partition(" run: ")[2].split(", ")
            n = _counts([part.partition(" (")[0] for part in parts], {"passed": 0, "failed": 1, "skipped": 2})
            if n is not None:
                return Result("cargo nextest", *n)
    return None


_READERS: tuple[Callable[[list[str]], Result | None], ...] = (
    _pytest, _unittest, _jest, _vitest, _go, _cargo, _nextest,
)  # fmt: skip
_MARKS = (
    " passed",
    " failed",
    " error",
    " skipped",
    " xfailed",
    " xpassed",
    " deselected",
    "no tests ran",
    "Ran ",
    "Tests",
    "ok  \t",
    "FAIL\t",
    '"Action":',
    "test result: ",
    "Summary [",
)


def _counts(parts: list[str], places: dict[str, int | None]) -> tuple[int, int, int] | None:
    """The sums of parts such as `3 passed`, each where `places` has its word; None where one is no such part."""
    sums = [0, 0, 0]
    for part in parts:
        count, _, word = part.strip().partition(" ")
        n = _number(count)
        if n is None or word not in places:
            return None
        place = places[word]
        if place is not None:
            sums[place] += n
    return (sums[0], sums[1], sums[2]) if parts else None


def _number(text: str) -> int | None:
    return int(text) if len(text) <= 10 and text.isascii() and text.isdigit() and int(text) <= MOST else None


# ── JUnit's XML ──────────────────────────────────────────────────────────────────────────────
def xml(text: str) -> Result | None:
    """What the JUnit XML in a text counts; None where there is none, or anything that no such report has.

    No document type is ever let in, so there are no entities to expand and nothing to fetch.
    """
    start = text.find("<testsuite")
    if start < 0:
        return None
    ends = [(text.rfind(end), end) for end in ("</testsuites>", "</testsuite>")]
    end = max(at + len(mark) if at >= 0 else -1 for at, mark in ends)
    if end <= start or end - start > XML_READ:
        return None
    # From the root element on: what may stand before it, a declaration or a document type, is not even read.
    return _parsed(text[start:end])


def _parsed(text: str) -> Result | None:
    from xml.parsers import expat

    count = _Count()
    parser = expat.ParserCreate("utf-8")
    parser.StartDoctypeDeclHandler = _refuse
    parser.EntityDeclHandler = _refuse
    parser.StartElementHandler = count.begin
    parser.EndElementHandler = count.end
    try:
        parser.Parse(text.encode("utf-8", "replace"), True)
    except (expat.ExpatError, _RefusedError, ValueError):
        return None
    return Result("JUnit", count.passed, count.failed, count.skipped) if count.cases else None


class _RefusedError(Exception):
    """The document has what a test report has no use for."""


def _refuse(*_: object) -> None:
    raise _RefusedError


class _Count:
    """The test cases of a report; a summary's own numbers are not believed."""

    def __init__(self) -> None:
        self.cases = self.passed = self.failed = self.skipped = 0
        self.within, self.shown = False, "passed"

    def begin(self, name: str, _: object) -> None:
        if name == "testcase":
            self.within, self.shown, self.cases = True, "passed", self.cases + 1
        elif self.within and name in ("failure", "error"):
            self.shown = "failed"
        elif self.within and name == "skipped" and self.shown == "passed":
            self.shown = "skipped"

    def end(self, name: str) -> None:
        if name == "testcase":
            self.within = False
            setattr(self, self.shown, getattr(self, self.shown) + 1)


def listed(values: Json) -> Iterator[str]:
    """`words` of each of a list of results."""
    yield from (told for one in values if (told := words(one))) if isinstance(values, list) else ()


def failed(values: Json) -> bool:
    """True where one of a list of results counts a failure."""
    rows = [one.get("failed") for one in values if isinstance(one, dict)] if isinstance(values, list) else []
    return any(type(n) is int and n > 0 for n in rows)
