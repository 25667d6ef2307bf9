"""Git's nouns: the same bytes and ids as git's own, and edits that agree with a dict of paths."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gitledger import objects
from gitledger.errors import BadData, MissingObject
from gitledger.model import Oid
from gitledger.objects import Commit, Object, TreeEntry
from tests.sealed import LONG, Repo, new_repo

ALGORITHMS = ("sha1", "sha256")
WHO = "Ada Tester <ada@example.org> 1790000000 +0000"


class Shelf(dict[Oid, Object]):
    """Objects by id, which counts what was asked of it."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[Oid] = []

    def fetch(self, oid: Oid) -> Object:
        self.asked.append(oid)
        if oid not in self:
            raise MissingObject(oid)
        return self[oid]

    def edit(self, base: Oid | None, changes: dict[str, bytes | None], algorithm: str = "sha1") -> objects.Edited:
        edited = objects.edit(self.fetch, base, changes, algorithm)
        self.update(dict(edited.objects))
        return edited

    def files(self, tree: Oid, where: str = "") -> dict[str, bytes]:
        found: dict[str, bytes] = {}
        for name, entry in (objects.entries(self.fetch, tree) or {}).items():
            if entry.is_folder:
                below = self.files(entry.oid, f"{where}{name}/")
                assert below, "an empty folder stayed"
                found |= below
            else:
                found[where + name] = self[entry.oid].data
        return found


@pytest.fixture
def shelf() -> Shelf:
    return Shelf()


# ── edits ────────────────────────────────────────────────────────────────────────────────────
NAMES = st.sampled_from(["a", "b", "a.b", "a-", "a0", "A", "ü", "x y"])
PATHS = st.lists(NAMES, min_size=1, max_size=3).map("/".join)
CHANGES = st.dictionaries(PATHS, st.one_of(st.none(), st.binary(max_size=3)), max_size=8)


def folders(paths: Iterable[str]) -> set[str]:
    return {path[:at] for path in paths for at, c in enumerate(path) if c == "/"}


def model_edit(files: dict[str, bytes], changes: dict[str, bytes | None]) -> dict[str, bytes] | None:
    """What a dict of files says of the same changes; None where a file and a folder would share a name."""
    deleted = {path for path, data in changes.items() if data is None}
    after = {path: data for path, data in files.items() if path not in deleted}
    after |= {path: data for path, data in changes.items() if data is not None}
    return None if deleted & folders(files) or after.keys() & folders(after) else after


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@given(steps=st.lists(CHANGES, min_size=1, max_size=5))
@settings(max_examples=150 if LONG else 40, deadline=None)
def test_edits_agree_with_a_dict_of_paths(algorithm: str, steps: list[dict[str, bytes | None]]) -> None:
    shelf = Shelf()
    tree: Oid | None = None
    files: dict[str, bytes] = {}
    for changes in steps:
        expected = model_edit(files, changes)
        if expected is None:
            with pytest.raises(BadData):
                shelf.edit(tree, changes, algorithm)
            continue
        edited = shelf.edit(tree, changes, algorithm)
        tree, files = edited.tree, expected
        assert shelf.files(tree) == files
        fresh = objects.edit(shelf.fetch, None, dict(files), algorithm)
        assert fresh.tree == tree, "the same files are the same tree, however they came about"


@given(files=st.dictionaries(PATHS, st.binary(max_size=20), max_size=12))
@settings(max_examples=25 if LONG else 10, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_trees_have_the_ids_that_git_gives_them(
    tmp_path_factory: pytest.TempPathFactory, algorithm: str, files: dict[str, bytes]
) -> None:
    files = {path: data for path, data in files.items() if path not in folders(files)}
    repo = new_repo(tmp_path_factory.mktemp("repo"), f"--object-format={algorithm}")
    stream = b"commit refs/heads/x\ncommitter A <a@b> 0 +0000\ndata 0\n"
    for path, data in files.items():
        quoted = "".join(f"\\{byte:03o}" for byte in path.encode()).encode()
        stream += b'M 100644 inline "%s"\ndata %d\n%s\n' % (quoted, len(data), data)
    repo.git("fast-import", "--quiet", input=stream)
    edited = objects.edit(Shelf().fetch, None, dict(files), algorithm)
    assert edited.tree == repo.tree("refs/heads/x")


def test_git_mktree_sorts_a_folder_as_we_do(repo: Repo) -> None:
    blob = repo.git("hash-object", "-w", "--stdin", input=b"x")
    tree = repo.git("mktree", input=f"100644 blob {blob}\tx\n")
    rows = [("100644", "blob", blob, "a.b"), ("040000", "tree", tree, "a"), ("100644", "blob", blob, "a0")]
    rows += [("100755", "blob", blob, "run"), ("120000", "blob", blob, "link")]
    made = repo.git("mktree", input="".join(f"{mode} {kind} {name}\t{path}\n" for mode, kind, name, path in rows))
    data = objects.format_tree(TreeEntry(int(mode, 8), path, name) for mode, _, name, path in rows)
    assert objects.oid("tree", data) == made
    assert [entry.name for entry in objects.parse_tree(data)] == ["a.b", "a", "a0", "link", "run"]
    assert repo.git("ls-tree", "--name-only", made).split() == ["a.b", "a", "a0", "link", "run"]


def test_an_edit_touches_only_the_trees_on_the_changed_paths(shelf: Shelf) -> None:
    wide = {f"{a}/{b}/f": b"x" for a in "abcdef" for b in "uvw"}
    base = shelf.edit(None, dict(wide)).tree
    shelf.asked.clear()
    edited = shelf.edit(base, {"c/v/f": b"new", "c/v/g": b"more"})
    assert len(shelf.asked) == 3
    assert [thing.kind for _, thing in edited.objects] == ["blob", "blob", "tree", "tree", "tree"]
    assert edited.rewritten[-1] == edited.tree
    assert len(edited.rewritten) == 3


def test_an_edit_that_changes_nothing_makes_nothing(shelf: Shelf) -> None:
    base = shelf.edit(None, {"a/b": b"x", "c": b"y"}).tree
    edited = shelf.edit(base, {"a/b": b"x", "no/such": None, "c/d": None})
    assert edited == objects.Edited(base, (), ())


def test_a_folder_left_empty_vanishes_up_to_the_root(shelf: Shelf) -> None:
    base = shelf.edit(None, {"a/b/c": b"x", "k": b"y"}).tree
    assert shelf.files(shelf.edit(base, {"a/b/c": None}).tree) == {"k": b"y"}
    empty = shelf.edit(base, {"a/b/c": None, "k": None})
    assert empty.tree == "4b825dc642cb6eb9a060e54bf8d69288fbee4904"
    assert empty.objects == ((empty.tree, Object("tree", b"")),)


def test_a_file_may_make_way_for_a_folder_in_one_edit_and_back(shelf: Shelf) -> None:
    base = shelf.edit(None, {"a": b"file"}).tree
    folder = shelf.edit(base, {"a": None, "a/b": b"x"}).tree
    assert shelf.files(folder) == {"a/b": b"x"}
    assert shelf.edit(folder, {"a/b": None, "a": b"file"}).tree == base


@pytest.mark.parametrize(
    "changes",
    [{"a/b": b"x"}, {"d": b"x"}, {"d": None}, {"n": b"x", "n/m": b"y"}],
    ids=["below a file", "over a folder", "delete a folder", "both at once"],
)
def test_a_file_and_a_folder_never_share_a_name(shelf: Shelf, changes: dict[str, bytes | None]) -> None:
    base = shelf.edit(None, {"a": b"file", "d/e": b"x"}).tree
    with pytest.raises(BadData):
        shelf.edit(base, changes)


@pytest.mark.parametrize(
    "path",
    [
        "",
        "/a",
        "a/",
        "a//b",
        "..",
        "a/../b",
        ".",
        "a/./b",
        ".git/x",
        "a/.GIT",
        ".Git",
        ".git.",
        ".git /x",
        "git~1",
        ".g\u200cit",
        ".git::$INDEX_ALLOCATION/x",
        "a\\b",
        "a\0b",
        "a\udc80",
    ],
)
def test_a_path_that_git_would_not_check_out_is_refused(shelf: Shelf, path: str) -> None:
    for data in (b"x", None):
        with pytest.raises(BadData):
            shelf.edit(None, {path: data})


def test_names_that_only_resemble_git_s_own_are_fine(shelf: Shelf) -> None:
    files: dict[str, bytes | None] = {".github/x": b"", ".gitignore": b"", "git": b"", "...": b"", "a.git": b""}
    assert shelf.files(shelf.edit(None, files).tree) == files


def test_a_blob_over_a_mebibyte_is_refused_and_one_at_the_limit_is_not(shelf: Shelf) -> None:
    assert shelf.edit(None, {"a": bytes(1 << 20)}).objects
    with pytest.raises(BadData, match="big would be 1048577 bytes"):
        objects.edit(shelf.fetch, None, {"ok": b"x", "big": bytes((1 << 20) + 1)})


def test_reading_answers_none_for_what_is_not_there(shelf: Shelf) -> None:
    tree = shelf.edit(None, {"a/b": b"x", "c": b""}).tree
    commit = objects.format_commit(Commit(tree, (), WHO, WHO, "m\n"))
    shelf["c" * 40] = Object("commit", commit)
    for root in (tree, "c" * 40):
        assert objects.read(shelf.fetch, root, "a/b") == b"x"
        assert objects.read(shelf.fetch, root, "c") == b""
        for path in ("a", "a/x", "x/y", "c/d", "a/b/c", "", "a/"):
            assert objects.read(shelf.fetch, root, path) is None, path
        assert set(objects.entries(shelf.fetch, root) or ()) == {"a", "c"}
        assert set(objects.entries(shelf.fetch, root, "a") or ()) == {"b"}
        assert objects.entries(shelf.fetch, root, "c") is None
        assert objects.entries(shelf.fetch, root, "no/where") is None


def test_a_missing_tree_is_an_error_and_not_an_absent_path(shelf: Shelf) -> None:
    edited = shelf.edit(None, {"a/b": b"x"})
    del shelf[edited.rewritten[0]]
    with pytest.raises(MissingObject):
        objects.read(shelf.fetch, edited.tree, "a/b")


# ── trees as bytes ───────────────────────────────────────────────────────────────────────────
@pytest.mark.parametrize(
    "data",
    [
        b"100644 a",
        b"100644 a\0short",
        b"100644a\0" + bytes(20),
        b" a\0" + bytes(20),
        b"100644 \0" + bytes(20),
        b"040000 a\0" + bytes(20),
        b"10z644 a\0" + bytes(20),
        (b"100644 a\0" + bytes(20)) * 2,
    ],
)
def test_a_damaged_tree_is_bad_data(data: bytes) -> None:
    with pytest.raises(BadData):
        objects.parse_tree(data)


@given(st.binary(max_size=80))
def test_any_bytes_are_a_tree_or_bad_data(data: bytes) -> None:
    try:
        entries = objects.parse_tree(data)
    except BadData:
        return
    again = objects.parse_tree(objects.format_tree(entries))
    assert sorted(again, key=lambda e: e.name) == sorted(entries, key=lambda e: e.name)


# Ids that look like the end of an entry, or like a whole one: where the next one begins is then easily missed.
IDS = st.sampled_from(
    [bytes(20), b"1" * 20, bytes(19) + b"a", (b"\x00100644 a\0" * 2)[:20], b"40000 b\0" * 2 + b"\0a4\0"]
)
ENTRIES = st.dictionaries(
    st.sampled_from(["a", "a0", "aa", "b", "b\1"]), st.tuples(st.sampled_from([objects.FILE, objects.FOLDER]), IDS)
)


@given(ENTRIES, ENTRIES, st.booleans())
def test_what_two_trees_have_not_alike_is_what_a_dict_of_their_entries_says(
    old: dict[str, tuple[int, bytes]], new: dict[str, tuple[int, bytes]], on_top: bool
) -> None:
    before, after = [
        {name: TreeEntry(mode, name, oid.hex()) for name, (mode, oid) in side.items()}
        for side in (old, old | new if on_top else new)
    ]
    found = objects.differing(objects.format_tree(before.values()), objects.format_tree(after.values()))
    told = {one.name: (was, now) for was, now in found if (one := was or now)}
    names = before.keys() | after.keys()
    assert told == {n: (before.get(n), after.get(n)) for n in names if before.get(n) != after.get(n)}
    assert len(told) == len(found)


@given(st.binary(max_size=80), st.binary(max_size=80), st.binary(max_size=40))
def test_any_two_byte_strings_are_compared_or_bad_data(one: bytes, other: bytes, both: bytes) -> None:
    for old, new in ((one, other), (both + one, both + other), (one + both, other + both)):
        try:
            objects.differing(old, new)
        except BadData:
            pass


def test_a_name_that_is_not_utf8_survives_an_edit_beside_it(shelf: Shelf) -> None:
    blob = objects.oid("blob", b"x")
    shelf[blob] = Object("blob", b"x")
    raw = b"100755 b\0" + bytes.fromhex(blob) + b"100644 \xff\xfe\0" + bytes.fromhex(blob)
    base = objects.oid("tree", raw)
    shelf[base] = Object("tree", raw)
    after = shelf.edit(base, {"a": b"x"}).tree
    assert shelf[after].data == b"100644 a\0" + bytes.fromhex(blob) + raw


# ── commits ──────────────────────────────────────────────────────────────────────────────────
def test_a_commit_is_byte_for_byte_what_git_commit_tree_makes(repo: Repo) -> None:
    tree, head = repo.tree(), repo.head()
    environment = {f"GIT_{who}_{part}": value for who in ("AUTHOR", "COMMITTER") for part, value in NAMED.items()}
    made = repo.git("commit-tree", tree, "-p", head, "-F", "-", input="Täst\n\nbody\n", env=environment)
    line = f"Zoë O'Hara <z@example.org> {NAMED['DATE']}"
    ours = objects.format_commit(Commit(tree, (head,), line, line, "Täst\n\nbody\n"))
    assert ours == cat(repo, made)
    assert objects.oid("commit", ours) == made


NAMED = {"NAME": "Zoë O'Hara", "EMAIL": "z@example.org", "DATE": "1790000000 +0130"}


def cat(repo: Repo, oid: Oid, kind: str = "commit") -> bytes:
    out = subprocess.run(["git", "cat-file", kind, oid], cwd=repo.path, capture_output=True, check=True)
    return out.stdout


LINE = st.text(st.characters(codec="utf-8", exclude_characters="\n\0"), min_size=1, max_size=12)
HEADER = st.tuples(
    st.sampled_from(["encoding", "mergetag", "HG:extra", "x"]), st.lists(LINE, min_size=1, max_size=3).map("\n".join)
)
SIGNATURE = st.tuples(
    st.sampled_from(["gpgsig", "gpgsig-sha256"]),
    st.lists(LINE, min_size=1, max_size=3).map(lambda x: "\n".join(x) + "\n"),
)


@given(
    message=st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=30),
    extra=st.lists(HEADER, max_size=3),
    signatures=st.lists(SIGNATURE, max_size=3),
    parents=st.integers(0, 3),
    raw=st.binary(max_size=3).filter(lambda b: b"\0" not in b),
)
def test_a_commit_is_parsed_with_nothing_lost(
    message: str,
    extra: list[tuple[str, str]],
    signatures: list[tuple[str, str]],
    parents: int,
    raw: bytes,
) -> None:
    message += raw.decode("utf-8", "surrogateescape")
    commit = Commit("a" * 40, ("b" * 40,) * parents, WHO, WHO, message, tuple(extra), tuple(signatures))
    data = objects.format_commit(commit)
    try:
        message.encode()
    except UnicodeEncodeError:
        message = message.encode("utf-8", "surrogateescape").decode("utf-8", "surrogateescape")
        commit = Commit(commit.tree, commit.parents, WHO, WHO, message, commit.extra, commit.signatures)
    assert objects.parse_commit(data) == commit
    bare = Commit(commit.tree, commit.parents, WHO, WHO, message, commit.extra)
    assert objects.signed_payload(data) == objects.format_commit(bare)
    armored = "-----BEGIN\nabc\n-----END\n"
    signed = objects.with_signature(objects.signed_payload(data), armored, "sha1")
    assert objects.parse_commit(signed).signatures == (("gpgsig", armored),)
    assert objects.signed_payload(signed) == objects.format_commit(bare)


def test_signatures_of_both_kinds_and_twice_are_all_returned() -> None:
    head = f"tree {'a' * 40}\nauthor {WHO}\ncommitter {WHO}\nencoding latin1\n"
    data = (head + "gpgsig one\n two\ngpgsig-sha256 three\n four\nx-last y\ngpgsig five\n\nmsg gpgsig no\n").encode()
    commit = objects.parse_commit(data)
    assert commit.signatures == (("gpgsig", "one\ntwo\n"), ("gpgsig-sha256", "three\nfour\n"), ("gpgsig", "five\n"))
    assert commit.extra == (("encoding", "latin1"), ("x-last", "y"))
    assert objects.signed_payload(data) == (head + "x-last y\n\nmsg gpgsig no\n").encode()


def test_a_continuation_line_that_looks_like_a_signature_is_none() -> None:
    data = f"tree {'a' * 40}\nauthor {WHO}\ncommitter {WHO}\nmergetag x\n gpgsig no\n\nm\n".encode()
    assert objects.parse_commit(data).signatures == ()
    assert objects.signed_payload(data) == data


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\n\nx",
        b"parent x\n\n",
        b"tree " + b"z" * 40 + b"\nauthor a\ncommitter b\n\n",
        b"tree " + b"a" * 40 + b"\ncommitter b\nauthor a\n\n",
        b"tree " + b"a" * 64 + b"\nparent " + b"b" * 40,
        b"tree " + b"a" * 40 + b"\nauthor a\ncommitter b\nparent " + b"b" * 40 + b"\n\n",
    ],
)
def test_what_git_could_not_read_as_a_commit_is_bad_data(data: bytes) -> None:
    with pytest.raises(BadData):
        objects.parse_commit(data)


@pytest.mark.parametrize("author", ["A <a@b> 1 +0000\nparent " + "c" * 40, "A\0 <a@b> 1 +0000"])
def test_a_name_cannot_smuggle_in_a_header(author: str) -> None:
    with pytest.raises(BadData):
        objects.format_commit(Commit("a" * 40, (), author, WHO, "m\n"))


def test_an_edited_and_committed_tree_is_clean_under_git_fsck(repo: Repo, tmp_path: Path, shelf: Shelf) -> None:
    edited = shelf.edit(None, {"a/b.md": b"x", "a.b": b"", "ü": b"\xff\0", "tasks/T-1/x": b"t"})
    commit = objects.format_commit(Commit(edited.tree, (), WHO, WHO, "subject\n\nTrailer: x\n"))
    store: Callable[[str, bytes], str] = lambda kind, data: repo.git(  # noqa: E731
        "hash-object", "-w", "-t", kind, "--stdin", input=data
    )
    assert [store(thing.kind, thing.data) for _, thing in edited.objects] == [name for name, _ in edited.objects]
    repo.git("update-ref", "refs/heads/ledger/main", store("commit", commit))
    done = subprocess.run(
        ["git", "fsck", "--strict", "--full"], cwd=repo.path, capture_output=True, env=os.environ, check=False
    )
    assert (done.returncode, done.stderr) == (0, b"")
