"""The yardstick of memory files: ten files, and a proposer that errs in every way the validator must catch.

`python -m benchmarks.memory` writes ten files of realistic shape from a seed (several languages, line ends, front
matter, code, tables, comments; facts planted that are superseded, held twice, of a day, stale, permanent), proposes
what may go and everything that may not, and prints what was accepted, what was refused and by which rule, and the bytes
that changed outside of the blocks that were named. What is accepted is applied in a ledger of its own and undone again.
It ends with 1 where anything is not as it must be.
"""

from __future__ import annotations

import json
import random
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from gitledger import memory, memoryundo, schema
from gitledger.blocks import split
from gitledger.ledger import Ledger
from gitledger.memorycheck import check, edited
from gitledger.memoryfile import digest
from gitledger.schema import BadChangeSet
from tests.ledgers import begin
from tests.sealed import first_repo, seal_process

Change = dict[str, Any]
SEED = 20261130


@dataclass(frozen=True, slots=True)
class Tongue:
    """How facts are said in a language: places to fill with a number."""

    sections: tuple[str, ...]
    facts: tuple[str, ...]
    old: str
    new: str
    day: str
    likes: str
    prose: str


TONGUES = {
    "en": Tongue(
        ("Servers", "People", "Decisions", "How we work", "Known problems"),
        ("the service on port {n} restarts at night", "ticket {n} is waiting for the vendor",
         "the report of week {n} lies in the shared folder", "user {n} wants short answers"),
        "staging runs version {n}", "staging runs version {m} since spring", "the build of today is {n}",
        "the user prefers tabs over spaces in file {n}", "This part was written in a long meeting, and nobody",
    ),
    "de": Tongue(
        ("Server", "Leute", "Entscheidungen", "Arbeitsweise", "Bekannte Fehler"),
        ("der Dienst auf Port {n} startet nachts neu", "Ticket {n} wartet auf den Hersteller",
         "der Bericht der Woche {n} liegt im Ordner", "Nutzer {n} möchte kurze Antworten"),
        "Staging läuft mit Version {n}", "Staging läuft seit März mit Version {m}", "der heutige Build ist {n}",
        "der Nutzer möchte Tabs statt Leerzeichen in Datei {n}", "Das entstand in einer langen Sitzung, und niemand",
    ),
    "zh": Tongue(
        ("服务器", "人员", "决定", "工作方式", "已知问题"),
        ("端口 {n} 上的服务每晚重启", "工单 {n} 在等供应商", "第 {n} 周的报告在共享文件夹", "用户 {n} 喜欢简短的回答"),
        "测试环境运行版本 {n}", "测试环境从三月起运行版本 {m}", "今天的构建是 {n}", "用户在文件 {n} 中喜欢制表符",
        "这一部分是在一次很长的会议中写的",
    ),
    "ru": Tongue(
        ("Серверы", "Люди", "Решения", "Как мы работаем", "Известные ошибки"),
        ("служба на порту {n} перезапускается ночью", "заявка {n} ждёт поставщика",
         "отчёт за неделю {n} лежит в общей папке", "пользователь {n} любит короткие ответы"),
        "стенд работает на версии {n}", "стенд с весны работает на версии {m}", "сегодняшняя сборка {n}",
        "пользователь любит табуляцию в файле {n}", "Это записали на долгой встрече, и никто",
    ),
    "es": Tongue(
        ("Servidores", "Personas", "Decisiones", "Cómo trabajamos", "Problemas conocidos"),
        ("el servicio del puerto {n} se reinicia de noche", "el caso {n} espera al proveedor",
         "el informe de la semana {n} está en la carpeta", "el usuario {n} quiere respuestas cortas"),
        "pruebas usa la versión {n}", "pruebas usa la versión {m} desde marzo", "la compilación de hoy es {n}",
        "el usuario prefiere tabuladores en el archivo {n}", "Esto se escribió en una reunión larga, y nadie",
    ),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Shape:
    """One file: its language, how many lines it has, its line ends, and what stands before its first line."""

    name: str
    tongue: str
    lines: int
    end: str = "\n"
    head: str = ""
    last: str = "\n"
    fences: bool = False
    nested: bool = False


SHAPES = (
    Shape("project notes", "en", 240),
    Shape("an agent's memory", "en", 1_950, nested=True),
    Shape("Windows line ends", "de", 400, end="\r\n", last=""),
    Shape("mark and front matter", "es", 300, head="\ufeff---\nname: memory\ntags: [a]\n---\n"),
    Shape("runbook with code", "en", 600, fences=True),
    Shape("Chinese", "zh", 500),
    Shape("Russian, nested", "ru", 800, nested=True),
    Shape("no final newline", "de", 250, last="", fences=True),
    Shape("old Mac line ends", "es", 220, end="\r"),
    Shape("all of it", "zh", 1_200, end="\r\n", head="---\nname: x\n---\n", last="", fences=True, nested=True),
)


@dataclass(slots=True)
class Written:
    """A file with what was planted in it, each block as a change set names it."""

    text: str = ""
    superseded: list[str] = field(default_factory=list)
    newer: list[str] = field(default_factory=list)
    twins: list[tuple[str, str]] = field(default_factory=list)
    days: list[str] = field(default_factory=list)
    permanent: list[str] = field(default_factory=list)
    stale: list[str] = field(default_factory=list)
    pairs: list[tuple[str, str]] = field(default_factory=list)
    parents: list[str] = field(default_factory=list)
    prose: list[str] = field(default_factory=list)
    headings: list[str] = field(default_factory=list)


USER = "# User\n\n{}\n"


def write(shape: Shape, rng: random.Random) -> Written:
    """A file of that shape; every line of it that is a fact stands once."""
    tongue, made = TONGUES[shape.tongue], Written()
    rows: list[str] = ["# Memory", ""]
    n = 100
    while len(rows) < shape.lines - 20:
        section = f"## {rng.choice(tongue.sections)} {n}"
        rows += [section, "", f"{tongue.prose} {n}.", f"({n})", ""]
        made.prose.append(f"{tongue.prose} {n}.")
        for _ in range(rng.randint(2, 4)):
            n += 7
            sub = f"### {rng.choice(tongue.sections)} {n}"
            made.headings.append(sub)
            rows += [sub, ""]
            facts = [f"- {rng.choice(tongue.facts).format(n=n + k)} ({n + k})" for k in range(rng.randint(4, 9))]
            rows += facts
            made.pairs.append((facts[0], facts[1]))
            n += 12
            rows += [f"- {tongue.old.format(n=n)} ({n})", f"- {tongue.new.format(n=n, m=n + 1)} ({n})"]
            made.superseded.append(rows[-2])
            made.newer.append(rows[-1])
            rows += [f"- {tongue.day.format(n=n)} [{n}]", f"- {tongue.likes.format(n=n)} [permanent]"]
            made.days.append(rows[-2])
            made.permanent.append(rows[-1])
            if shape.nested:
                rows += [f"- {tongue.likes.format(n=n)}, {n}", f"  - {n}.1", f"    - {n}.2", f"  - {n}.3"]
                made.parents.append(rows[-4])
            if shape.fences:
                rows += ["", "```sh", f"# {n} is no heading", f"make {n}", "```", "", f"<!-- {n}", "a comment -->"]
            rows += [""]
        n += 3
        stale = [f"### {rng.choice(tongue.sections)} {n} (2019)", f"{tongue.prose} {n}!", f"- {n}", ""]
        rows += stale
        made.stale.append("\n".join(stale))
        twin = f"- {tongue.likes.format(n=n)} · {n}"
        rows += [
            f"## {n} {rng.choice(tongue.sections)}",
            "",
            twin,
            f"{twin} !",
            "",
            "| a | b |",
            "|---|---|",
            f"| {n} | x |",
            "",
        ]
        made.twins.append((twin, f"{twin} !"))
    made.text = (
        shape.head.replace("\n", shape.end) + shape.end.join(rows).rstrip("\r\n") + (shape.end if shape.last else "")
    )
    return made


def written(shape: Shape) -> Written:
    """One of the ten files, the same each time."""
    return write(shape, random.Random(SEED + SHAPES.index(shape)))


def change(kind: str, *original: str, **more: Any) -> Change:
    return {"kind": kind, "original": list(original), "reason": "no longer needed", **more}


def line_of(made: Written, wanted: str) -> int:
    lines = split(made.text.encode(), "").lines
    return next(n for n, line in enumerate(lines, 1) if line.rstrip("\r\n") == wanted)


def right(made: Written) -> list[Change]:
    """What may go, and is planted to go; less than half of it all."""
    merged = made.pairs[1::3]
    found = [change("superseded", block) for block in made.superseded[::2]]
    found += [change("ephemeral", block) for block in made.days[::2]]
    found += [change("stale-section", block) for block in made.stale[::2]]
    found += [
        change("duplicate", second, held_at={"file": "MEMORY.md", "line": line_of(made, first)})
        for first, second in made.twins[::2]
    ]
    found += [change("merge", *pair, replacement=f"- {pair[0].rpartition('(')[2][:-1]}") for pair in merged]
    return found[:190]


Err = Callable[[Written, random.Random], list[Change] | bytes]


def _first(made: Written) -> str:
    return made.superseded[0]


def _share(made: Written, part: float) -> list[Change]:
    """So much of the file, section by section, everything that is not permanent."""
    lines = split(made.text.encode(), "")
    free = [lines.bare(n) for n in range(len(lines.lines))]
    wanted = [row for row in free if row.startswith("- ") and "[permanent]" not in row and free.count(row) == 1]
    return [change("detail", row) for row in wanted[: int(len(wanted) * part)]][:200]


ERRORS: dict[str, Err] = {
    "a block that is not there": lambda m, r: [change("detail", _first(m) + "!")],
    "white space changed": lambda m, r: [change("detail", _first(m).replace(" ", "  ", 1))],
    "the start of a line": lambda m, r: [change("detail", _first(m)[:-3])],
    "line numbers left in": lambda m, r: [change("detail", f"{line_of(m, _first(m)):>4}|{_first(m)}")],
    "carriage returns": lambda m, r: [change("detail", f"{m.superseded[0]}\r\n{m.newer[0]}")],
    "carriage returns in a replacement": lambda m, r: [change("detail", m.days[0], replacement="- x\r\n- y")],
    "a block that stands often": lambda m, r: [change("detail", "|---|---|")],
    "one block twice": lambda m, r: [change("detail", _first(m)), change("ephemeral", _first(m))],
    "blocks that overlap": lambda m, r: [change("detail", f"{m.superseded[0]}\n{m.newer[0]}", m.newer[0])],
    "a permanent item": lambda m, r: [change("superseded", m.permanent[0])],
    "one permanent item among good changes": lambda m, r: [*right(m)[:5], change("superseded", m.permanent[0])],
    "a heading alone": lambda m, r: [change("ephemeral", m.headings[0])],
    "half a paragraph": lambda m, r: [change("detail", m.prose[0])],
    "a part of a section": lambda m, r: [change("stale-section", m.stale[0].split("\n")[0])],
    "a section and the next one": lambda m, r: [change("stale-section", _two(m))],
    "a section that is none": lambda m, r: [change("stale-section", m.days[0])],
    "a merge with a heading": lambda m, r: [change("merge", m.headings[0], m.pairs[0][0], replacement="- x")],
    "a merge of two subsections": lambda m, r: [change("merge", m.pairs[0][0], m.pairs[1][0], replacement="- x")],
    "a merge outside of any": lambda m, r: [change("merge", *m.twins[0], replacement="- x")],
    "a merge that is longer": lambda m, r: [change("merge", *m.pairs[0], replacement="- " + "x" * 900)],
    "a merge without replacement": lambda m, r: [change("merge", *m.pairs[0])],
    "a number made up": lambda m, r: [change("merge", *m.pairs[0], replacement="- 999999")],
    "a replacement for what only goes": lambda m, r: [change("ephemeral", m.days[0], replacement="- x")],
    "a replacement that is a heading": lambda m, r: [change("detail", m.days[0], replacement="# x")],
    "a replacement that hides": lambda m, r: [change("detail", m.days[0], replacement="<!-- x -->")],
    "a replacement that opens a fence": lambda m, r: [change("detail", m.days[0], replacement="```")],
    "a replacement of blanks": lambda m, r: [change("detail", m.days[0], replacement=" \n ")],
    "an invisible character": lambda m, r: [change("detail", m.days[0], replacement="- \u200bx")],
    "a replacement called permanent": lambda m, r: [change("detail", m.days[0], replacement="- [permanent]")],
    "a duplicate of another fact": lambda m, r: [_dup(m, m.twins[0][0], m.days[0])],
    "a duplicate of itself": lambda m, r: [_dup(m, m.twins[0][0], m.twins[0][0])],
    "twins that name each other": lambda m, r: [_dup(m, *m.twins[0]), _dup(m, *reversed(m.twins[0]))],
    "a duplicate in a file nobody showed": lambda m, r: [
        change("duplicate", m.twins[0][0], held_at={"file": "/etc/passwd", "line": 1})
    ],
    "a duplicate of an empty line": lambda m, r: [_held(m.twins[0][0], line_of(m, ""))],
    "a duplicate of a line beyond the file": lambda m, r: [_held(m.twins[0][0], 999_999)],
    "a place for what is no duplicate": lambda m, r: [{**_dup(m, *m.twins[0]), "kind": "detail"}],
    "a duplicate without a place": lambda m, r: [change("duplicate", m.twins[0][0])],
    "more than half": lambda m, r: _share(m, 1.0),
    "no reason": lambda m, r: [{**change("detail", _first(m)), "reason": ""}],
    "a reason of two lines": lambda m, r: [{**change("detail", _first(m)), "reason": "a\nb"}],
    "a reason that is an essay": lambda m, r: [{**change("detail", _first(m)), "reason": "x" * 400}],
    "no block": lambda m, r: [change("detail")],
    "a block of blanks": lambda m, r: [change("detail", " \n")],
    "a block that is a number": lambda m, r: [{**change("detail"), "original": [7]}],
    "more changes than a person reads": lambda m, r: [change("detail", _first(m))] * 201,
    "a kind of its own": lambda m, r: [change("obsolete", _first(m))],
    "a key of its own": lambda m, r: [{**change("detail", _first(m)), "confidence": "high"}],
    "another file's digest": lambda m, r: json.dumps(
        {"source_sha256": "0" * 64, "changes": [change("detail", _first(m))]}
    ).encode(),
    "no digest": lambda m, r: json.dumps({"changes": []}).encode(),
    "one key twice": lambda m, r: _document(m, _first(m)).replace(b'"changes"', b'"changes": [], "changes"'),
    "prose around the document": lambda m, r: b"Here it is: " + _document(m, _first(m)),
    "a document cut off": lambda m, r: b'{"source_sha256": "',
    "a list instead": lambda m, r: b"[]",
}


def _dup(made: Written, block: str, held: str) -> Change:
    return _held(block, line_of(made, held))


def _held(block: str, line: int) -> Change:
    return change("duplicate", block, held_at={"file": "MEMORY.md", "line": line})


def _two(made: Written) -> str:
    """A section that is stale, and the one behind it, whole."""
    lines = split(made.text.encode(), "")
    rows = [lines.bare(n) for n in range(len(lines.lines))]
    first = rows.index(made.stale[0].split("\n")[0])
    ends = [n for n in range(first, len(rows)) if rows[n].startswith("## ")]
    return "\n".join(rows[first : ends[1]])


def _document(made: Written, block: str) -> bytes:
    value = {"source_sha256": digest(made.text.encode()), "changes": [change("detail", block)]}
    return json.dumps(value).encode()


NESTED: dict[str, Err] = {"an item without what is nested in it": lambda m, r: [change("detail", m.parents[0])]}
FENCED: dict[str, Err] = {
    "a fence's first line": lambda m, r: [change("detail", f"```sh\n{_fence(m)}")],
    "a comment's first line": lambda m, r: [change("detail", f"<!-- {_fence(m).split()[1]}")],
}
FRONT: dict[str, Err] = {"a line of the front matter": lambda m, r: [change("detail", "name: memory")]}


def _fence(made: Written) -> str:
    lines = split(made.text.encode(), "")
    return next(lines.bare(n) for n in range(len(lines.lines)) if lines.bare(n).endswith("is no heading"))


def errors(shape: Shape) -> dict[str, Err]:
    """The errors that a file of this shape has room for."""
    more = (NESTED if shape.nested else {}) | (FENCED if shape.fences else {})
    return ERRORS | more | (FRONT if "name: memory" in shape.head else {})


def judged(made: Written, answer: list[Change] | bytes) -> tuple[tuple[str, ...], bytes]:
    """Why an answer was refused, () where it was not, and the file behind it."""
    data = made.text.encode()
    whole = (
        answer if isinstance(answer, bytes) else json.dumps({"source_sha256": digest(data), "changes": answer}).encode()
    )
    text = split(data, "MEMORY.md")
    held = {"USER.md": split(USER.format("- likes tabs").encode(), "USER.md")}
    try:
        edits = check(text, digest(data), schema.read_memory_set(whole), "MEMORY.md", held)
    except BadChangeSet as e:
        return e.errors, data
    return (), edited(text, edits).data()


def outside(made: Written, changes: list[Change], after: bytes) -> int:
    """Bytes that differ from what a plain search for the named blocks, another way than the program's, leaves."""
    data = made.text.encode()
    for one in changes:
        for n, block in enumerate(one["original"]):
            ends = {block.replace("\n", end).encode() for end in ("\n", "\r\n", "\r")}
            raw = next(raw for raw in ends if data.count(raw) >= 1)
            at = _line(data, raw)
            stop = at + len(raw)
            tail = next((end for end in (b"\r\n", b"\n", b"\r") if data.startswith(end, stop)), b"")
            put = one["replacement"].encode() + tail if n == 0 and "replacement" in one else b""
            data = data[:at] + put + data[stop + len(tail) :]
    return sum(a != b for a, b in zip(data, after, strict=False)) + abs(len(data) - len(after))


def _line(data: bytes, raw: bytes) -> int:
    at = data.find(raw)
    while at >= 0:
        ends = data[at + len(raw) : at + len(raw) + 1]
        if (at == 0 or data[at - 1 : at] in (b"\n", b"\r")) and ends in (b"\n", b"\r", b""):
            return at
        at = data.find(raw, at + 1)
    raise AssertionError(raw)


def applied(ledger: Ledger, name: str, made: Written, changes: list[Change]) -> bool:
    """Apply a change set for real and undo it; True where every byte came back."""
    path = Path(ledger.gitdir.top) / "memory" / f"{name}.md"
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(made.text.encode())
    desk = replace(ledger.desk, config=replace(ledger.desk.config, memory=schema.Memory(files=(f"memory/{name}.md",))))
    book = Ledger(desk, ledger.gitdir)
    loaded = memory.present(book)[0]
    data = json.dumps({"source_sha256": loaded.sha256, "changes": _named(changes, loaded.target.name)}).encode()
    done = memory.apply(book, loaded, memory.accepted(book, loaded, data), "compact")
    there = path.read_bytes() != loaded.data
    memoryundo.undo(book, done.name)
    return there and path.read_bytes() == loaded.data


def _named(changes: list[Change], name: str) -> list[Change]:
    return [{**one, "held_at": {**one["held_at"], "file": name}} if "held_at" in one else one for one in changes]


def run(say: Callable[[str], None], shapes: Sequence[Shape] = SHAPES, *, real: bool = True) -> int:
    """Say the tables; how many things are not as they must be. `real` applies and undoes in a ledger, too."""
    wrong = 0
    files = [(shape, written(shape)) for shape in shapes]
    with tempfile.TemporaryDirectory(prefix="gitledger-memory-") as folder:
        ledger = None
        if real:
            seal_process(Path(folder))
            ledger = begin(first_repo(Path(folder) / "repo"))
        say("| file | lines | bytes | changes | bytes less | bytes changed outside | undone byte for byte |")
        say("|---|---|---|---|---|---|---|")
        for n, (shape, made) in enumerate(files):
            changes = right(made)
            why, after = judged(made, changes)
            strange = outside(made, changes, after) if not why else -1
            back = "yes" if ledger and applied(ledger, f"f{n}", made, changes) else "no" if ledger else "–"
            wrong += bool(why) + (strange != 0) + (back == "no")
            size = len(made.text.encode())
            count = len(split(made.text.encode(), "").lines)
            less = size - len(after)
            say(f"| {shape.name} | {count:,} | {size:,} | {len(changes)} | {less:,} | {strange} | {back} |")
            if why:
                say(f"\n{why[:3]}\n")
    kinds = list(dict.fromkeys(name for shape, _ in files for name in errors(shape)))
    table = []
    total = Counter[str]()
    for name in kinds:
        rows = list(_tried(files, name))
        refused = [why for why, _ in rows if why]
        changed = sum(changed for _, changed in rows)
        wrong += len(rows) - len(refused) + changed
        total.update(proposals=len(rows), refused=len(refused), changed=changed)
        reason = refused[0][-1] if refused else "–"
        short = reason[:100].replace("|", "\\|") + ("…" if len(reason) > 100 else "")
        table.append(f"| {name} | {len(rows)} | {len(refused)} | {short} |")
    accepted = total["proposals"] - total["refused"]
    say(
        f"\nA scripted proposer errs in {len(kinds)} ways on each file that has room for it: {total['proposals']} "
        f"proposals, {total['refused']} refused, {accepted} accepted, {total['changed']} bytes changed.\n"
    )
    say("| what the proposer does | proposals | refused | for |\n|---|---|---|---|")
    for row in table:
        say(row)
    return wrong


def _tried(files: list[tuple[Shape, Written]], name: str) -> Iterator[tuple[tuple[str, ...], int]]:
    for shape, made in files:
        if err := errors(shape).get(name):
            why, after = judged(made, err(made, random.Random(SEED)))
            yield why, int(after != made.text.encode())


if __name__ == "__main__":
    sys.exit(1 if run(print) else 0)
