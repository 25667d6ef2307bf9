"""Which records a few words are about: an index beside the ledger, derived from it and never the truth.

`index-NAME.sqlite` in the clone's own folder holds the texts of tasks, decisions, blockers, questions, artifacts and
notes by writer, for SQLite's full-text search. It follows the tip when it is asked, by what changed since; it is made
anew when it is missing, of another form, or damaged; and where none can be had the records themselves are looked
through, which is only slower. It gives keys: what is shown of a record is read from the ledger.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence

from gitledger import codec, gitdir, layout, objects
from gitledger.errors import CannotWrite, LedgerError
from gitledger.ledger import Ledger
from gitledger.model import Finding, Key, Oid, Record
from gitledger.patterns import pattern
from gitledger.typed import TYPE_CHECKING, Any, TypeAlias
from gitledger.values import dataclass
from gitledger.view import View, is_open

if TYPE_CHECKING:
    import sqlite3

    from gitledger.store import Store

VERSION = 1
"""The form of the index; one of another is made anew."""
KINDS = (layout.TASK, layout.DECISION, layout.BLOCKER, layout.QUESTION, layout.ARTIFACT, layout.NOTE)
MOST = 60
"""Matches that are given at most, the best first."""
WORDS = 24
"""Words of a query that are looked for; of a long prompt the rarer ones are among the first as often as not."""
PATIENCE = 0.25
"""Seconds to wait for another process that writes the index; then the records are looked through."""
PENDING = 200
"""Records that are in no commit yet and are put beside the index at most, the newest."""
_WEIGHTS = "bm25(6.0, 1.0, 4.0)"
_WORD = pattern(r"[^\W_]+")
_PATH = pattern(r"[\w.@+-]*(?:/[\w.@+-]+)+/?|[\w@+-]+\.[A-Za-z][A-Za-z0-9]{0,7}\b")
_COMMON = frozenset(
    """
    a about after again all also an and any are as at be been before but by can could did do does for from get go had
    has have he her here him his how i if in into is it its just let like make me more my need no not now of on one or
    our out please should so some than that the their them then there these they this to up us use was we were what
    when where which while who why will with would you your der die das und ist ein eine den dem mit von zu auf
    """.split()  # noqa: SIM905 (reads as one list)
)
_SCHEMA = """
    CREATE TABLE state(tip TEXT NOT NULL);
    CREATE TABLE rows(id INTEGER PRIMARY KEY, key TEXT NOT NULL, kind TEXT NOT NULL, writer TEXT NOT NULL,
        live INTEGER NOT NULL);
    CREATE INDEX by_key ON rows(key);
    CREATE VIRTUAL TABLE texts USING fts5(title, body, paths, tokenize='porter unicode61 remove_diacritics 2');
"""
Database: TypeAlias = "sqlite3.Connection"
Said: TypeAlias = tuple[str, str, str]  # title, body, paths


@dataclass(frozen=True, slots=True)
class Query:
    """What is looked for: words, and paths of files; ids of records are not in it."""

    words: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.words or self.paths)


@dataclass(frozen=True, slots=True)
class Match:
    """A record that stands, and how well it fits: the higher the better, comparable within one answer."""

    key: Key
    score: float


def path(ledger: Ledger) -> str:
    """The index's file, whether or not it is there."""
    return os.path.join(ledger.desk.home.state, names(ledger.desk.home.name)[0])


def names(ledger: str) -> tuple[str, ...]:
    """The files of ledger `ledger`'s index, in the clone's own folder."""
    return (f"index-{ledger}.sqlite", f"index-{ledger}.sqlite-journal")


def forget(state: str, ledger: str) -> None:
    """Remove the index of a ledger, which the next query makes anew: for when the ledger itself forgot something."""
    for name in names(ledger):
        try:
            os.unlink(os.path.join(state, name))
        except FileNotFoundError:
            pass


def read(text: str) -> Query:
    """The query that a request's own words make."""
    text = text if len(text) <= 8_000 else f"{text[:4_000]} {text[-4_000:]}"
    paths = tuple(dict.fromkeys(found.strip("./") for found in _PATH.findall(text) if found.strip("./")))
    words = (word for word in _WORD.findall(text.casefold()) if len(word) > 1 and word not in _COMMON)
    return Query(tuple(dict.fromkeys(words))[:WORDS], paths[:8])


def matches(ledger: Ledger, view: View, query: Query, trusted: Sequence[str]) -> list[Match]:
    """The standing records in which `trusted` writers said some of the words, the best first.

    What is wrong with the index, or with the place it lies in, makes this slower and never fails it.
    `view` is the ledger as it stands, with what is in no commit yet.
    """
    if not query or not trusted:
        return []
    for _ in range(2):
        try:
            return _indexed(ledger, view, query, trusted)
        except (_Useless, LedgerError):  # none to be had, or a folder of the ledger's is damaged: the others are found
            break
        except _errors():
            try:
                forget(ledger.desk.home.state, ledger.desk.home.name)
            except OSError:
                break
    return _scanned(ledger, view, query, trusted)


# ── the index ────────────────────────────────────────────────────────────────────────────────
class _Useless(Exception):
    """There is no index to be had now: none that this SQLite can make, no place for it, or somebody else has it."""


def _errors() -> tuple[type[Exception], ...]:
    try:
        from _sqlite3 import Error
    except ImportError:
        return (OSError,)
    return (Error, OSError)


def _connect(file: str) -> Database:
    # `sqlite3` itself loads `datetime`, which costs a request as much as all the rest of the index.
    try:
        from _sqlite3 import connect
    except ImportError as e:
        raise _Useless(str(e)) from e
    try:
        gitdir.check_state(os.path.dirname(os.path.dirname(file)))
        os.close(gitdir.open_own(file, os.O_RDWR | os.O_CREAT))
    except PermissionError:
        os.close(gitdir.open_own(file))  # on a disk that cannot be written it can still be read
    except CannotWrite as e:
        raise _Useless(str(e)) from e
    except OSError as e:
        if not os.path.isfile(file):
            raise _Useless(str(e)) from e
        os.close(gitdir.open_own(file))
    made: Database = connect(file, timeout=PATIENCE, isolation_level=None)
    # What a crash of the machine makes of it is made anew; no request waits for the disk. The journal's file stays:
    # to find room for a new one takes ext4 up to a millisecond, and longest where it has just removed one.
    try:
        for pragma in ("synchronous=OFF", "journal_mode=PERSIST", "trusted_schema=OFF"):
            made.execute(f"PRAGMA {pragma}")
    except BaseException:
        made.close()
        raise
    return made


def _indexed(ledger: Ledger, view: View, query: Query, trusted: Sequence[str]) -> list[Match]:
    database = _connect(path(ledger))
    try:
        _catch_up(database, ledger)
        writable = True
        pending = _pending(view)
        if pending:
            try:
                _exclusively(database)
                for key, record in pending:
                    _put(database, key, record)
            except _errors():
                writable = False
        found = _ask(database, query, trusted)
        if pending and writable:
            database.execute("ROLLBACK")  # they are in no commit: the next query folds them in anew
        elif pending:
            found = _with_pending(found, pending, query, trusted)
        return found
    finally:
        database.close()


def catch_up(ledger: Ledger) -> int:
    """Bring the index to the tip; how many records that touched. Raises what SQLite does."""
    database = _connect(path(ledger))
    try:
        return _catch_up(database, ledger)
    finally:
        database.close()


def _catch_up(database: Database, ledger: Ledger) -> int:
    tip = ledger.tip()
    if _known(database) == tip:
        return 0
    _exclusively(database)
    count = follow(database, ledger, _known(database), tip)  # asked again: another process may have been faster
    database.execute("COMMIT")
    return count


def _known(database: Database) -> str | None:
    """The tip that the index stands at; None for a new one; an error for what is none of ours."""
    (version,) = database.execute("PRAGMA user_version").fetchone()
    if version != VERSION:
        return None
    found = database.execute("SELECT tip FROM state").fetchone()
    return str(found[0]) if found else None


def _exclusively(database: Database) -> None:
    from _sqlite3 import OperationalError

    try:
        database.execute("BEGIN IMMEDIATE")
    except OperationalError as e:
        raise _Useless(str(e)) from e  # locked by another process, or on a disk that cannot be written


def follow(database: Database, ledger: Ledger, known: Oid | None, tip: Oid) -> int:
    """Bring the index from the tip it stands at to `tip`, within a transaction; how many records that touched."""
    store = ledger.desk.store
    before = b""
    if known is None:
        _make(database)
    else:
        try:
            before = _root(store, known)
        except LedgerError:  # that commit is gone, as after a purge: nothing of it may stay
            _make(database)
    tops = {now.name: (was, now) for was, now in objects.differing(before, _root(store, tip), store.algorithm) if now}
    count = 0
    for kind in KINDS:
        was, now = tops.get(kind.folder, (None, None))
        for where, oid in _changed(store, was, now, kind.folder):
            try:
                record = codec.read_record(store.get(oid).data, where)
            except LedgerError:  # damaged, which fsck names; the others are found
                continue
            _put(database, record.key, record)
            count += 1
    database.execute("UPDATE state SET tip = ?", (tip,))
    return count


def _make(database: Database) -> None:
    from _sqlite3 import OperationalError

    for table in ("state", "rows", "texts"):
        database.execute(f"DROP TABLE IF EXISTS {table}")
    for statement in _SCHEMA.split(";"):
        try:
            database.execute(statement)
        except OperationalError as e:
            if "fts5" in str(e):
                raise _Useless(str(e)) from e
            raise
    database.execute("INSERT INTO state VALUES ('')")
    database.execute(f"PRAGMA user_version = {VERSION}")


def _root(store: Store, commit: Oid) -> bytes:
    return store.get(objects.parse_commit(store.get(commit).data).tree).data


def _changed(
    store: Store, before: objects.TreeEntry | None, after: objects.TreeEntry | None, where: str
) -> list[tuple[str, Oid]]:
    """The records' files that are new or other; folders that are the same are not read, nor those of checkpoints."""
    found: list[tuple[str, Oid]] = []
    pending = [(before, after, where)]
    while pending:
        before, after, where = pending.pop()
        if after is None or not after.is_folder:
            name = where.rpartition("/")[2]
            if after and (name == "task.json" or _is_record(name)):
                found.append((where, after.oid))
            continue
        old = store.get(before.oid).data if before and before.is_folder else b""
        for was, now in objects.differing(old, store.get(after.oid).data, store.algorithm):
            if now and now.name != "checkpoints":
                pending.append((was, now, f"{where}/{now.name}"))
    return sorted(found)


def _is_record(name: str) -> bool:
    return name.endswith(".json") and layout.parse_id(name.removesuffix(".json")) is not None


def _put(database: Database, key: Key, record: Record) -> None:
    found = layout.numbered(key)
    if found is None:
        return
    live = int(is_open(found[0], record))
    rows = [(writer, live, *said) for writer, said in by_writer(record)]
    held = database.execute(
        "SELECT id, writer, live, title, body, paths FROM rows JOIN texts ON texts.rowid = id WHERE key = ?", (key,)
    ).fetchall()
    if [row[1:] for row in held] == rows:
        return  # a checkpoint changes its task's record each time, and as a rule no word that is looked for
    for row, *_ in held:
        database.execute("DELETE FROM texts WHERE rowid = ?", (row,))
        database.execute("DELETE FROM rows WHERE id = ?", (row,))
    for writer, _, *said in rows:
        new = database.execute(
            "INSERT INTO rows(key, kind, writer, live) VALUES (?, ?, ?, ?)", (key, found[0].letter, writer, live)
        ).lastrowid
        database.execute("INSERT INTO texts(rowid, title, body, paths) VALUES (?, ?, ?, ?)", (new, *said))


def _ask(database: Database, query: Query, trusted: Sequence[str]) -> list[Match]:
    words = [f'"{word}"' for word in query.words]
    places = (" ".join(_WORD.findall(where.casefold())) for where in query.paths)
    paths = [f'paths : "{place}"' for place in places if place]
    asked = " OR ".join([*words, *paths])
    marks = ",".join("?" * len(trusted))
    found = database.execute(
        "SELECT rows.key, texts.rank FROM texts JOIN rows ON rows.id = texts.rowid "  # noqa: S608 (question marks)
        f"WHERE texts MATCH ? AND texts.rank MATCH ? AND rows.live AND rows.writer IN ({marks}) "
        "ORDER BY texts.rank LIMIT ?",
        (asked, _WEIGHTS, *trusted, MOST),
    )
    best: dict[Key, float] = {}
    for key, rank in found:
        best.setdefault(key, -rank)  # a record of several writers has a row for each
    return [Match(key, score) for key, score in best.items()]


def _pending(view: View) -> list[tuple[Key, Record]]:
    letters = {kind.letter for kind in KINDS}
    keys = [key for key in view.touched if key[:1] in letters and layout.numbered(key)][-PENDING:]
    return [(key, record) for key in keys if (record := view.record(key)) is not None]


# ── without an index ─────────────────────────────────────────────────────────────────────────
def _scanned(ledger: Ledger, view: View, query: Query, trusted: Sequence[str]) -> list[Match]:
    from gitledger import search

    faults: list[Finding] = []

    def every() -> Iterator[tuple[Key, Record]]:
        for kind in KINDS:
            for key, _, record in search.records(ledger, view, kind.word, faults):
                if is_open(kind, record):
                    yield key, record

    return _ranked(every(), query, trusted)


def _with_pending(
    found: list[Match], pending: list[tuple[Key, Record]], query: Query, trusted: Sequence[str]
) -> list[Match]:
    keys = {key for key, _ in pending}
    standing = [(k, r) for k, r in pending if (kind := layout.numbered(k)) and is_open(kind[0], r)]
    return [*_ranked(standing, query, trusted), *(one for one in found if one.key not in keys)]


def _ranked(
    records: Iterator[tuple[Key, Record]] | list[tuple[Key, Record]], query: Query, trusted: Any
) -> list[Match]:
    """The records by how many of the words they hold, a rare word being worth more than a common one."""
    from collections import Counter
    from math import log

    held: dict[Key, Counter[str]] = {}
    often: Counter[str] = Counter()
    count = 0
    stems = {_stem(word) for word in query.words}
    for key, record in records:
        count += 1
        points: Counter[str] = Counter()
        for writer, (title, body, paths) in by_writer(record):
            if writer in trusted:
                for text, worth in ((title, 3), (body, 1)):
                    for stem in stems & {_stem(word) for word in _WORD.findall(text.casefold())}:
                        points[stem] = max(points[stem], worth)
                points.update({where: 4 for where in query.paths if where.casefold() in paths.casefold()})
        if points:
            held[key] = points
            often.update(points.keys())
    worth_of = {term: log(1 + count / n) for term, n in often.items()}
    ranked = [Match(key, sum(worth_of[t] * n for t, n in points.items())) for key, points in held.items()]
    return sorted(ranked, key=lambda one: -one.score)[:MOST]


def _stem(word: str) -> str:
    for ending in ("ations", "ation", "ings", "ing", "edly", "ers", "ies", "ed", "es", "er", "ly", "s", "y", "e"):
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            return word[: -len(ending)]
    return word


# ── texts ────────────────────────────────────────────────────────────────────────────────────
_BODY = ("goal", "scope", "non_goals", "summary", "next", "why", "text", "area")
_ITEMS = ("criteria", "completed", "todos", "links")
_PATHS = ("path",)


def by_writer(record: Record) -> list[tuple[str, Said]]:
    """What each writer said in a record, by whose stamp it bears: title, body, and paths of files."""
    titles: dict[str, list[str]] = {}
    bodies: dict[str, list[str]] = {}
    places: dict[str, list[str]] = {}
    for name, (value, stamp) in record.fields.items():
        if isinstance(value, str):
            into = titles if name == "title" else places if name in _PATHS else bodies if name in _BODY else None
            if into is not None:
                into.setdefault(stamp.writer, []).append(value)
    for listed in (*_ITEMS, "evidence"):
        for fields in record.items.get(listed, {}).values():
            if any(fields.get(name, (True,))[0] is False for name in ("open",)) or fields.get("dropped", (None,))[0]:
                continue  # what a task said once and says no more
            for name, (value, stamp) in fields.items():
                into = places if name in _PATHS else bodies if name in ("text", "title", "command") else None
                if into is not None and isinstance(value, str):
                    into.setdefault(stamp.writer, []).append(value)
    writers = dict.fromkeys([*titles, *bodies, *places])
    return [(one, (_kept(titles.get(one)), _kept(bodies.get(one)), _kept(places.get(one)))) for one in writers]


def _kept(texts: list[str] | None) -> str:
    # SQLite takes no lone surrogate and reads a text to its first NUL.
    return "\n".join(texts or ())[:50_000].replace("\0", " ").encode("utf-8", "replace").decode()
