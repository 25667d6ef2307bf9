"""Checkpoints as packs: each one's objects in a pack of their own, which git keeps until many are combined.

A pack with a `.keep` file beside it is left alone by every `git gc`, `repack` and `prune`, and `gc --auto` does not
count it. So what `keep` has stored cannot be taken before a ref names it. Our `.keep` files begin with MARK, and that
is the only bookkeeping: LIMIT of them are combined into one ordinary pack, which is git's own business from then on.

What a writer that failed has left is combined with the rest: objects that no ref reaches travel along into the
ordinary pack, and git's own gc drops them in its time.

The order in which packs come and go follows from how `git repack` works: it lists the packs without `.keep`, makes a
new pack of what no kept pack holds, and deletes those it listed. A kept pack may become an ordinary one at any time;
an ordinary one that becomes kept in between would be deleted with objects that nobody took over.
"""

from __future__ import annotations

import fcntl
import os
import struct
import time
import zlib
from collections.abc import Iterable, Sequence
from itertools import pairwise

from gitledger import digests, gitcli, gitdir, store
from gitledger.errors import BadData, CannotWrite, IOFailed, LedgerError
from gitledger.model import Oid
from gitledger.objects import Object

LIMIT = 32
"""How many packs of ours there may be before they are combined."""
BIG = 1 << 20
"""Bytes from which a pack is left to git alone: all that is combined is in memory at once."""
MARK = "gitledger"
"""How our `.keep` files begin."""
DEADLINE = 30.0
"""Seconds that one child of git may take."""

_NOTE = f"{MARK}: objects of a checkpoint; combined with others later, then left to git gc"
_SYNCED = ("-c", "core.fsync=all", "-c", "core.fsyncMethod=fsync")
# An index of version 1 would be another format to read, and a .rev file one more to write and sync.
_PLAIN = ("-c", "pack.indexVersion=2", "-c", "pack.writeReverseIndex=false")
_TYPES = {"commit": 1, "tree": 2, "blob": 3, "tag": 4}
_ABANDONED = 3600.0  # seconds after which no `git index-pack` of ours can still be about to finish a pack
_MULTI = "multi-pack-index"
_INDEX_V2 = b"\377tOc\0\0\0\2"


def build(things: Iterable[Object], algorithm: str) -> bytes:
    """A pack, version 2, of whole objects."""
    parts = [b""]
    for thing in things:
        size = len(thing.data)
        byte, size = _TYPES[thing.kind] << 4 | size & 15, size >> 4
        head = bytearray()
        while size:
            head.append(byte | 0x80)
            byte, size = size & 0x7F, size >> 7
        head.append(byte)
        parts.append(bytes(head) + zlib.compress(thing.data))
    parts[0] = b"PACK" + struct.pack(">II", 2, len(parts) - 1)
    body = b"".join(parts)
    return body + digests.of(algorithm, body).digest()


def keep(common: str, pack: bytes) -> str:
    """Store a pack, durably and kept from every gc, and return its path without an ending; once more is no fault.

    Git hashes and indexes it. Raises CannotWrite, IOFailed or TryAgain, and then at most leaves what the next
    `combine` or git's own gc removes.
    """
    folder = os.path.join(common, "objects", "pack")
    words = [*_SYNCED, *_PLAIN, "index-pack", "--stdin", f"--keep={_NOTE}"]
    for _ in range(store.ATTEMPTS):
        answer = _git(common, words, pack)
        # A `git prune --expire=now` takes also the file that git is just about to give its name.
        if "No such file or directory" not in answer.err or not os.path.isdir(folder):
            break
    # `keep <hash>`, or `pack <hash>` where such a pack was kept already.
    _, _, name = answer.line.partition("\t")
    if answer.code or not name:
        if "ermission" in answer.err or "Read-only" in answer.err:
            raise CannotWrite(f"{folder} is not yours to write: see who owns it with `ls -l`")
        raise gitcli.failure(["index-pack"], answer, common)
    path = os.path.join(folder, f"pack-{name}")
    # Git syncs the pack and its index before they get these names, but neither the mark nor the folder. A pack that
    # was here already may be from a process that died before it came to that.
    store.sync(f"{path}.pack", f"{path}.idx", f"{path}.keep", folder)
    return path


def let_go(common: str) -> int:
    """Leave all our kept packs to git, whose gc then drops what no ref reaches; how many those were.

    For when something must go. The caller holds the ledger's lock, so that no checkpoint is on its way.
    """
    folder = os.path.join(common, "objects", "pack")
    kept = [name.removesuffix(".keep") for name in os.listdir(folder) if name.endswith(".keep")]
    ours = [path for name in sorted(kept) if _is_ours(path := os.path.join(folder, name))]
    for path in ours:
        _let_go(path)
    return len(ours)


def combine(common: str, algorithm: str) -> None:
    """Make one ordinary pack of our kept ones, if there are LIMIT; never raises, and loses nothing wherever it ends.

    Only packs that `keep` made are read and removed, so the cost does not grow with the repository. For callers who
    are about to `keep`: what is there belongs to writers that are done, for better or worse.
    """
    folder = os.path.join(common, "objects", "pack")
    try:
        mend(common)
        if len(_ours(folder)) < LIMIT:
            return
        fd = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
        try:
            # Two at once might each let go of a pack that the other still relies on.
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return
            except OSError:
                pass  # NFS locks no folder; the ledger's own lock keeps the clone's writers apart
            _tidy(common, folder, algorithm)
        finally:
            os.close(fd)
    except (LedgerError, OSError):
        pass  # a checkpoint does not fail for this; the next one tries again


def mend(common: str) -> bool:
    """Remove a multi-pack-index that names a pack that is gone, and say whether it did.

    One that git begins while `combine` removes packs can be finished just after. Where it names the combined pack too,
    git looks for an object in the pack that is gone and nowhere else; without it, it reads each pack's own index.
    """
    folder = os.path.join(common, "objects", "pack")
    path = os.path.join(folder, _MULTI)
    if not os.path.lexists(path):
        return False
    try:
        names = _named(path)
    except (OSError, ValueError, struct.error):
        return False  # gone meanwhile, or of a form that git has to judge
    if all(os.path.exists(os.path.join(folder, f"{name.removesuffix('.idx')}.pack")) for name in names):
        return False
    _unlink(path)
    return True


def _named(path: str) -> list[str]:
    """The packs that a multi-pack-index names, by their indexes; ValueError where it is none of version 1."""
    with open(path, "rb") as f:
        signature, version, _, chunks, _, _ = struct.unpack(">4sBBBBI", f.read(12))
        if signature != b"MIDX" or version != 1:
            raise ValueError(f"{path} is no multi-pack-index that is known here")
        table = [struct.unpack(">4sQ", f.read(12)) for _ in range(chunks + 1)]
        for (name, start), (_, end) in pairwise(table):
            if name == b"PNAM":
                f.seek(start)
                return [os.fsdecode(one) for one in f.read(min(end - start, BIG)).split(b"\0") if one]
    raise ValueError(f"{path} names no packs")


def _tidy(common: str, folder: str, algorithm: str) -> None:
    parts: list[str] = []
    # `git maintenance` combines packs as well, and keeps its multi-pack-index right, which we could not.
    maintained = _is_maintained(common, folder)
    for path in _ours(folder):
        if not (os.path.exists(f"{path}.pack") and os.path.exists(f"{path}.idx")):
            if os.stat(f"{path}.keep").st_mtime < time.time() - _ABANDONED:
                _remove(path)  # whoever made or removed it died over that
        elif maintained or os.path.getsize(f"{path}.pack") > BIG:
            _let_go(path)
        else:
            parts.append(path)
    if parts:
        _combine(common, folder, parts, algorithm)


def _combine(common: str, folder: str, parts: list[str], algorithm: str) -> None:
    try:
        every = {oid for path in parts for oid in index(path, algorithm)}
        listed = "".join(f"{oid}\n" for oid in sorted(every)).encode()
        # Deltas would cost four fifths of the time, and save one hundredth of what a later gc packs.
        answer = _git(common, ["pack-objects", "-q", "--stdout", "--window=0"], listed)
        if answer.code:
            raise gitcli.failure(["pack-objects"], answer, common)
        before = set(os.listdir(folder))
        made = keep(common, answer.out)
        if not every.issubset(index(made, algorithm)):
            raise IOFailed(f"{made}.pack lacks objects that it was made of: run `git fsck` to see what is hurt")
    except (LedgerError, OSError):
        # As they are, they would be tried at every checkpoint, and more of them each time. Git's own gc can combine
        # them too, and says what is wrong with one that is damaged.
        for path in parts:
            _let_go(path)
        raise
    if f"{os.path.basename(made)}.pack" in before and made not in parts:
        return  # an ordinary pack a moment ago: a repack that listed it then may be about to delete it
    for path in parts:
        if path != made:
            _remove(path)
    store.sync(folder)
    _let_go(made)  # last: only now is it the only one that holds these objects
    # There was none before, so this one was begun while packs went, and may name them: git would look for objects in
    # those and nowhere else. `git repack` removes it for the same reason.
    _unlink(os.path.join(folder, _MULTI))


def _is_maintained(common: str, folder: str) -> bool:
    """Whether git has a multi-pack-index here, which must not name a pack that is gone, or may be writing one."""
    lock = os.path.join(common, "objects", "maintenance.lock")
    return any(map(os.path.exists, (lock, *(os.path.join(folder, _MULTI + ending) for ending in ("", ".lock", ".d")))))


def _ours(folder: str) -> list[str]:
    """The paths, without endings, of all packs with our mark; none where there are fewer than LIMIT with any mark."""
    kept = [name.removesuffix(".keep") for name in os.listdir(folder) if name.endswith(".keep")]
    paths = [os.path.join(folder, name) for name in sorted(kept)] if len(kept) >= LIMIT else []
    return [path for path in paths if _is_ours(path)]


def _is_ours(path: str) -> bool:
    try:
        return gitdir.read_own(f"{path}.keep", len(MARK)) == MARK.encode()
    except (OSError, CannotWrite):
        return False  # gone, or another user's


def _let_go(path: str) -> None:
    """Leave a pack to git, which may do with it as with all of its own."""
    _unlink(f"{path}.keep")


def _remove(path: str) -> None:
    # The index first, as git itself does it; the mark last, so that what is left after a crash is still known as ours.
    for ending in (".idx", ".pack", ".keep"):
        _unlink(path + ending)


def _unlink(path: str) -> None:
    try:
        os.unlink(path)
    except FileNotFoundError:
        pass  # a process that died got as far as this


def index(path: str, algorithm: str) -> list[Oid]:
    """The ids of all objects in a pack of ours, read from its index; BadData where that is damaged."""
    with open(f"{path}.idx", "rb") as f:
        data = f.read()
    size = 20 if algorithm == "sha1" else 32
    start = len(_INDEX_V2) + 1024  # behind how many ids there are up to each first byte
    count = struct.unpack_from(">I", data, start - 4)[0] if len(data) >= start else -1
    if not data.startswith(_INDEX_V2) or count < 0 or len(data) < start + count * (size + 8) + 2 * size:
        raise BadData(f"{path}.idx is no whole pack index: run `git fsck` to see what is hurt")
    ids = data[start : start + count * size].hex()
    return [ids[at : at + 2 * size] for at in range(0, len(ids), 2 * size)]


def _git(common: str, words: Sequence[str], data: bytes) -> gitcli.Answer:
    # Before 2.44 git fetches what a partial clone lacks, whatever is said.
    never = {"GIT_ALLOW_PROTOCOL": "none"}
    args = [f"--git-dir={common}", *words]
    return gitcli.run(args, cwd=common, input=data, deadline=DEADLINE, check=False, extra_env=never)
