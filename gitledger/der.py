"""ASN.1 as certificates and CMS signatures hold it, read element by element, strictly. Pure.

Lengths may be indefinite where the caller says so: GnuPG writes a signature's outer parts that way.
"""

from __future__ import annotations

from gitledger.values import dataclass

INTEGER, BIT_STRING, OCTET_STRING, OID, SEQUENCE, SET = 0x02, 0x03, 0x04, 0x06, 0x30, 0x31
DEEPEST = 16
"""How far elements of indefinite length may stand in each other."""

_CONSTRUCTED = 0x20


@dataclass(frozen=True, slots=True)
class Element:
    """One element: its tag, its contents, and all of it as it stands."""

    tag: int
    body: bytes
    whole: bytes


def elements(data: bytes, *, indefinite: bool = False) -> list[Element]:
    """All elements of `data`, one behind the other with nothing left; ValueError for any other bytes."""
    found = []
    at = 0
    while at < len(data):
        one, at = _element(data, at, DEEPEST if indefinite else 0)
        found.append(one)
    return found


def sequence(data: bytes, *, indefinite: bool = False) -> list[Element]:
    """The elements of the one SEQUENCE that `data` is."""
    found = elements(data, indefinite=indefinite)
    if len(found) != 1 or found[0].tag != SEQUENCE:
        raise ValueError("it is not one sequence")
    return elements(found[0].body, indefinite=indefinite)


def oid(element: Element) -> str:
    """An object identifier with its dots."""
    if element.tag != OID or not element.body or element.body[-1] & 0x80:
        raise ValueError("an object identifier is none")
    numbers, n = [], 0
    for byte in element.body:
        n = n << 7 | byte & 0x7F
        if not byte & 0x80:
            numbers.append(n)
            n = 0
    first = min(numbers[0] // 40, 2)
    return ".".join(map(str, (first, numbers[0] - 40 * first, *numbers[1:])))


def _element(data: bytes, at: int, deep: int) -> tuple[Element, int]:
    head = data[at : at + 2]
    if len(head) < 2 or not head[0] or head[0] & 0x1F == 0x1F:
        raise ValueError("it is cut off, or holds what belongs in none")
    start = at + 2
    if head[1] == 0x80:
        if not deep or not head[0] & _CONSTRUCTED:
            raise ValueError("a length is missing")
        end = start
        while data[end : end + 2] != b"\0\0":
            _, end = _element(data, end, deep - 1)
        return Element(head[0], data[start:end], data[at : end + 2]), end + 2
    size = head[1]
    if size > 0x80:
        width = size & 0x7F
        size = int.from_bytes(data[start : start + width], "big")
        if width > 3 or size < 0x80 or size >> 8 * (width - 1) == 0:
            raise ValueError("a length is written as none is")
        start += width
    if len(data) < start + size:
        raise ValueError("it is cut off")
    return Element(head[0], data[start : start + size], data[at : start + size]), start + size
