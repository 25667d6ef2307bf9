"""Every secret that a rule knows replaced in a text by its mark, also where it is disguised or goes on in another line.

`redact` calls this, and loads it no sooner than there is a text to read.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cache

from gitledger import disguise
from gitledger.secrets_rules import KEYWORDS, RULES, Rule
from gitledger.typed import TypeAlias

_HINTS = frozenset(hint for rule in (*RULES, *KEYWORDS) for hint in rule.hints)
MARK = re.compile(r"\[redacted:[a-z0-9-]+\]")
"""What stands in a secret's place."""
Mark: TypeAlias = Callable[[str, int, int], str]
"""What is put in a secret's place, of its rule's name and where it begins and ends."""


def replaced(text: str) -> str:
    """`text` with `[redacted:<rule>]` in each such secret's place; a second run changes nothing."""
    for _ in range(10):  # a secret gone, its neighbour may stand free; text without one is read once
        before = text
        text = _once(_decoded(_joined(text)), _marked)
        if text == before:
            break
    return text


# ── how a match is replaced ──────────────────────────────────────────────────────────────────
def _once(text: str, mark: Mark) -> str:
    lower = text.lower()
    if "private" in lower:
        from gitledger.privatekeys import private_keys

        text = private_keys(text, mark)
    found = {hint for hint in _HINTS if hint in lower}
    if not found:
        return text  # nearly every one
    for rule in RULES:
        if not found.isdisjoint(rule.hints):
            text = _compiled(rule.pattern).sub(_replacer(rule, mark), text)
    for rule in KEYWORDS:
        if not found.isdisjoint(rule.hints):
            from gitledger import keywords

            text = _compiled(rule.pattern).sub(keywords.judge(rule, mark), text)
    return text


def _marked(name: str, start: int, end: int) -> str:
    return f"[redacted:{name}]"


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    # compiled at first need: all of them at import would cost more than the rest of a session's start
    return re.compile(pattern, re.ASCII)


def _replacer(rule: Rule, mark: Mark) -> Callable[[re.Match[str]], str]:
    from gitledger import keywords  # longer to load than all else here, and most texts have no use for it

    def replace(match: re.Match[str]) -> str:
        group: str | int = "secret" if "secret" in match.re.groupindex else 0
        secret = match[group]
        if secret is None:
            group, secret = 0, match[0]
        if keywords.blank(secret) or (group and keywords.no_value(secret)):
            return match[0]
        if rule.mixed and not keywords.mixed(secret):
            return match[0]
        if rule.name == "authorization" and keywords.words_or_call(secret):
            return match[0]
        if rule.name == "uri-password" and secret.lower() in keywords.PLACEHOLDERS:
            return match[0]
        start, end = match.span(group)
        return match.string[match.start() : start] + mark(rule.name, start, end) + match.string[end : match.end()]

    return replace


# ── disguises ────────────────────────────────────────────────────────────────────────────────
_TOKENS = tuple(rule for rule in RULES if rule.token)
_SHORTEST = 18  # characters of a token that any rule knows
_TOKEN_HINTS = frozenset(hint for rule in _TOKENS for hint in rule.hints)


def _decoded(text: str) -> str:
    """`text` with those secrets replaced that a rule knows only once their disguise is off."""
    bare = disguise.decoded(text)
    return text if bare is None else _replaced_in(text, bare)


def _joined(text: str) -> str:
    """`text` with those tokens replaced that go on behind a line end.

    What stands there is the rest of a token where nothing else would make it one, or where it looks made itself.
    """
    lower = text.lower()
    if "\n" not in text or not any(hint in lower for hint in _TOKEN_HINTS):
        return text
    bare = disguise.decoded(text)
    plain = text if bare is None else bare.text
    found = []
    for pieces in disguise.folds(plain):
        if sum(end - start for start, end in pieces) < _SHORTEST:
            continue
        for name, start, end in _over(plain, pieces):
            found.append((*((start, end) if bare is None else bare.origin(start, end)), name))
    return _with_marks(text, found)


def _over(text: str, pieces: list[tuple[int, int]]) -> Iterator[tuple[str, int, int]]:
    """Name, start and end of each token that begins in the first of these pieces of a text and goes on in the next."""
    from gitledger import keywords

    words = [text[start:end] for start, end in pieces]
    first = len(words[0])
    lower = (words[0] + words[1]).lower()
    for rule in _TOKENS:
        if not any(hint in lower for hint in rule.hints):
            continue
        joined = ""
        for n, word in enumerate(words, 1):
            joined += word
            match = next(
                (m for m in _compiled(rule.pattern).finditer(joined) if m.start() < first < m.end() + (n == 1)), None
            )
            if match is not None:
                break
        else:
            continue
        if keywords.blank(match[0]) or (rule.mixed and not keywords.mixed(match[0])):
            continue
        end = pieces[n - 1][1] - (len(joined) - match.end())
        while end == pieces[n - 1][1] and n < len(words) and keywords.made(words[n]):
            n, end = n + 1, pieces[n][1]
        if n > 1:
            yield rule.name, pieces[0][0] + match.start(), end


def _replaced_in(text: str, bare: disguise.Bare) -> str:
    from gitledger import keywords

    found: list[tuple[int, int, str]] = []

    def mask(name: str, start: int, end: int) -> str:
        found.append((*bare.origin(start, end), name))
        return keywords.FILL * (end - start)  # as long as what it stands for: places stay what they are

    _once(bare.text.replace(keywords.FILL, " "), mask)
    return _with_marks(text, found)


def _with_marks(text: str, found: list[tuple[int, int, str]]) -> str:
    parts, done = [], 0
    for start, end, name in sorted(found):
        if start >= done and MARK.search(text, start, end) is None:
            parts += [text[done:start], f"[redacted:{name}]"]
            done = end
    return "".join([*parts, text[done:]])
