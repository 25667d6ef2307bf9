"""The frame of the write-ahead log: one checksummed text line per entry.

    GL1 <crc32> <id> <at> <client> <event> <worktree, %-escaped> <payload, with \\ and newline escaped>\\n

Standard library only, and little of it: this runs once per turn of every agent.
"""

from __future__ import annotations

import os
import time
import zlib

_SWAPPED = bytes.maketrans(b"\\\n", b"\n\\")
_WORD = "abcdefghijklmnopqrstuvwxyz0123456789_.-"


class Entry:
    """One line of the log: `payload` is what the client sent, byte for byte; `worktree` is where, by git's name."""

    __slots__ = ("at", "client", "event", "id", "payload", "worktree")

    def __init__(
        self,
        id: str,  # noqa: A002 (the word that events have for it)
        at: str,
        client: str,
        event: str,
        payload: bytes,
        worktree: str = "main",
    ) -> None:
        self.id = id
        self.at = at
        self.client = client
        self.event = event
        self.payload = payload
        self.worktree = worktree

    def __repr__(self) -> str:
        return f"Entry({self.id} {self.at} {self.client} {self.event} {self.worktree}, {len(self.payload)} bytes)"


def uuid7(ms: int, rand: bytes) -> str:
    """The UUIDv7 (RFC 9562) of a time in milliseconds and ten random bytes."""
    if len(rand) < 10:
        raise ValueError("a UUIDv7 needs ten random bytes")
    bits = int.from_bytes(rand[:10], "big")
    value = (ms & (1 << 48) - 1) << 80 | 7 << 76 | bits >> 68 << 64 | 2 << 62 | bits & (1 << 62) - 1
    text = f"{value:032x}"
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


def at(ms: int) -> str:
    """A time in milliseconds as UTC text of fixed width, `2026-11-30T14:49:11.123Z`."""
    year, month, day, hour, minute, second = time.gmtime(ms // 1000)[:6]
    return f"{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{ms % 1000:03}Z"


def is_word(text: str, more: str = "") -> bool:
    """True where `text` may name a client or an event: `[a-z0-9_.-]+`, with the characters of `more`."""
    return text != "" and not text.strip(_WORD + more)


def encode(entry: Entry) -> bytes:
    """The entry as its one line, whatever its payload holds; ValueError where id, client or event is no word."""
    if not (is_word(entry.id) and is_word(entry.client) and is_word(entry.event) and is_word(entry.at.lower(), ":")):
        raise ValueError(f"id, client and event must be words of [a-z0-9_.-]: {entry}")
    safe = _WORD + _WORD.upper()
    place = "".join(chr(b) if chr(b) in safe else f"%{b:02x}" for b in os.fsencode(entry.worktree))
    head = f"{entry.id} {entry.at} {entry.client} {entry.event} {place} ".encode("ascii")
    body = head + entry.payload.replace(b"\\", b"\\\\").replace(b"\n", b"\\n")
    return b"GL1 %08x %b\n" % (zlib.crc32(body), body)


def decode(line: bytes) -> Entry:
    """The entry that `encode` made this line from; ValueError says what is wrong with any other line."""
    parts = line.removesuffix(b"\n").split(b" ", 2)
    if parts[0] != b"GL1" or len(parts) < 3:
        raise ValueError("is not a line of this log" if line.endswith(b"\n") else "ends in the middle")
    if b"%08x" % zlib.crc32(parts[2]) != parts[1]:
        raise ValueError("does not match its checksum" if line.endswith(b"\n") else "ends in the middle")
    words = parts[2].split(b" ", 5)
    if len(words) != 6:
        raise ValueError("lacks a field")
    ident, at, client, event, place = (word.decode("ascii") for word in words[:5])
    plain, *escaped = place.split("%")
    worktree = plain.encode() + b"".join(bytes.fromhex(part[:2]) + part[2:].encode() for part in escaped)
    # Pairs of backslashes first: only then is a backslash before an n a newline. A line holds no newline of its own, so
    # that one stands for a backslash meanwhile, and a backslash for a newline.
    payload = words[5].replace(b"\\\\", b"\n").replace(b"\\n", b"\\").translate(_SWAPPED)
    return Entry(ident, at, client, event, payload, os.fsdecode(worktree))
