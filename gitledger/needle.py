"""One secret that is looked for: every form in which a ledger may hold it, and how it is taken out of a text. Pure.

A text may hold all of it, one of its lines, or the beginning of it before the mark of a cut; a file name its slug; a
file its escaped form. What is taken out leaves MARK.
"""

from __future__ import annotations

import json
import re

from gitledger.errors import BadData
from gitledger.model import Json
from gitledger.render.text import dashed, inline, line, visible
from gitledger.values import dataclass

MARK = "[redacted:purged]"
SHORTEST = 8
"""Characters of a secret; a shorter text would be found in words that have nothing to do with it."""
LONGEST = 64 * 1024
_LEAST = 6  # characters at a cut that are taken for the secret's
_LINE = 16  # characters of one line of a longer secret that count by themselves
_CUT_AFTER = re.compile(r"…|\[… ")
_CUT_BEFORE = re.compile(r"\[… [^\]\n]{0,60}\]\n?")


@dataclass(frozen=True, slots=True)
class Needle:
    """A secret's forms: in texts, longest first; in file names; in the bytes of files."""

    texts: tuple[str, ...]
    slugs: tuple[str, ...]
    data: tuple[bytes, ...]

    def scrub(self, text: str) -> str:
        """`text` with MARK wherever the secret stood."""
        for form in self.texts:
            text = text.replace(form, MARK)
        if "…" not in text:
            return text
        parts, done = [], 0
        for cut in _CUT_AFTER.finditer(text):
            begun = self._before(text, done, cut.start())
            if begun is not None:
                parts += [text[done:begun], MARK]
                done = cut.start()
        text = "".join([*parts, text[done:]])
        parts, done = [], 0
        for cut in _CUT_BEFORE.finditer(text):
            ended = self._after(text, cut.end())
            if ended is not None:
                parts += [text[done : cut.end()], MARK]
                done = ended
        return "".join([*parts, text[done:]])

    def holds(self, text: str) -> bool:
        """True where the secret, or what a cut left of it, stands in `text`."""
        return self.scrub(text) != text

    def holds_name(self, path: str) -> bool:
        """True where a path holds it, as it is or as a slug, also one that was cut."""
        if self.holds(path):
            return True
        for part in path.split("/"):
            # a slug ends at forty characters, wherever that is in the secret
            if any(one in part or part.endswith(_beginnings(one)) for one in self.slugs):
                return True
        return False

    def holds_json(self, value: Json) -> bool:
        """True where it stands in any text of `value`, keys too."""
        if isinstance(value, str):
            return self.holds(value) or self.holds_name(value)
        if isinstance(value, list):
            return any(map(self.holds_json, value))
        if isinstance(value, dict):
            return any(self.holds_json(key) or self.holds_json(item) for key, item in value.items())
        return False

    def in_bytes(self, data: bytes) -> bool:
        """True where it stands in a file, an object or a name in a tree, in any of its written forms."""
        return any(form in data for form in self.data)

    def scrub_json(self, value: Json) -> Json:
        """`value` without it, keys too; two keys that become equal stay apart by a number."""
        if isinstance(value, str):
            return self.scrub(value)
        if isinstance(value, list):
            return [self.scrub_json(item) for item in value]
        if not isinstance(value, dict):
            return value
        clean: dict[str, Json] = {}
        for key, item in value.items():
            shown, number = self.scrub(key), 2
            while shown in clean:
                shown, number = f"{self.scrub(key)}#{number}", number + 1
            clean[shown] = self.scrub_json(item)
        return clean

    def scrub_bytes(self, data: bytes) -> bytes:
        """`data` with MARK for each written form of it."""
        for form in sorted(self.data, key=len, reverse=True):
            data = data.replace(form, MARK.encode())
        return data

    def _before(self, text: str, least: int, at: int) -> int | None:
        """Where the beginning of the secret begins that a cut at `at` left; None where it left none."""
        for form in self.texts:
            for size in range(min(len(form) - 1, at - least), _LEAST - 1, -1):
                if text.endswith(form[:size].rstrip(), least, at) and len(form[:size].rstrip()) >= _LEAST:
                    return at - len(form[:size].rstrip())
        return None

    def _after(self, text: str, at: int) -> int | None:
        for form in self.texts:
            for size in range(min(len(form) - 1, len(text) - at), _LEAST - 1, -1):
                if text.startswith(form[-size:], at):
                    return at + size
        return None


def read(data: bytes) -> Needle:
    """The needle of a file that holds one secret and nothing else, line ends at its end left out.

    Raises BadData for what cannot be looked for: no text, too short, too long.
    """
    try:
        secret = data.decode("utf-8-sig").strip("\r\n")
    except UnicodeDecodeError as e:
        raise BadData(f"the secret is no UTF-8 text (byte {e.start}); put the text of the secret alone into it") from e
    if len(secret) < SHORTEST:
        raise BadData(
            f"the secret has {len(secret)} characters, and below {SHORTEST} it would be found in words that are none; "
            "put more of it, or what stands around it, into the file"
        )
    if len(data) > LONGEST:
        raise BadData(f"the secret has more than {LONGEST:,} bytes; put the secret alone into the file")
    return of(secret)


def of(secret: str) -> Needle:
    """The needle of a secret."""
    plain = secret.replace("\r\n", "\n")
    lines = [row.strip() for row in plain.split("\n")] if "\n" in plain else []
    rows = [row for row in lines if len(row) >= _LINE and not row.startswith("-----")]
    kept = {
        form: None
        for text in (secret, plain, line(plain), visible(plain), " ".join(plain.split("\n")), *rows)
        if len(form := text.strip("\n")) >= SHORTEST
    }
    slugs = tuple({one: None for text in kept if len(one := dashed(text)) >= SHORTEST})
    texts = tuple(sorted({**kept, **dict.fromkeys(slugs)}, key=len, reverse=True))
    written: dict[bytes, None] = {}
    for text in texts:
        for form in (text, json.dumps(text)[1:-1], json.dumps(text, ensure_ascii=False)[1:-1], inline(text)):
            written[form.encode("utf-8", "surrogateescape")] = None
            written[form.replace("/", "\\/").encode("utf-8", "surrogateescape")] = None
    return Needle(texts, slugs, tuple(written))


def _beginnings(slug: str) -> tuple[str, ...]:
    return tuple(slug[:size] for size in range(SHORTEST + 4, len(slug)))
