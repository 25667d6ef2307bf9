"""Is what follows `password` or `api_key` a secret? Its value tells: made by a machine, or a name, a gap, a call."""

from __future__ import annotations

import re
from collections.abc import Callable

from gitledger.patterns import pattern
from gitledger.secrets_rules import KEY, PROSE, Rule

FILL = "\ue000"
"""Stands, once for each character, for what a rule has taken out already, where places must not move."""
PLACEHOLDERS = frozenset(("password", "pass", "passwd", "pw", "pwd", "secret", "token"))
"""Words that stand for a password in the example of an address."""

_MARK = pattern(r"\[redacted:[a-z0-9-]+\]")
_NAME = pattern(rf"(?i:{KEY})\Z")
_STEMS = pattern(r"(?i)pass|pwd|secret|token|cred|key")
_NOT_A_VALUE = pattern(
    r"""(?xs)
    (?:\[redacted:[a-z0-9-]+\])+(?:@.*|[\])}.,;:]*) # done already
    | .*\ue000.*                               # done already, and masked
    | [xX*.•·_\-…?#=+]+                        # blanked out
    | <.* | \$.* | %[\w(].* | \{.*\} | \[[\w -]*\]   # a variable, or a gap to fill
    | (?i:my|your|the|some|any|insert|enter|replace|put|add|change)[-_ ].*
    | (?i:change_?me|todo|tbd|n/?a|none|null|nil|undefined|true|false|yes|no|on|off|required|optional|string|text
        |value|str|int|bytes|bool|boolean|object|any|hidden|masked|redacted|removed|example|dummy|fake|sample|test
        |foo|bar|baz|bearer|basic|oauth2?|jwt|sha\d+|md5|base64|utf-?8|bcrypt\d?|argon2\w*|uint8array|bytes32)[)\]}.,;:]*
    | [a-zA-Z][\w+.-]*://.*                    # an address; its password has a rule of its own
    | (?:~|\.{1,2})?/[\w.@-]+(?:/[\w.@-]+)*/?  # a path
    | [\w./-]+\.(?:pem|key|pub|txt|json|ya?ml|toml|env|crt|p12|py|ts|js|md|go|rs)
    | .*(?:os\.environ|process\.env|getenv|secrets\.[A-Za-z_]|\benv[.\[(]).*
    """
)
_CALL = pattern(r"(?s)[A-Za-z_$][\w$]*(?:(?:\?\.|\.|::|->)[A-Za-z_$][\w$]*)*!?[(\[{].*")
_CHAIN = pattern(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+")
_NUMBERS = pattern(r"[\d.,:/TZ%-]+")
_WORDS = pattern(r"(?:(?:[A-Z]?[a-z]{2,}+|[A-Z]{2,}+|[vV]?\d{1,2}(?!\d))[-_./: ]?)+[)\]}.,;]*")


def judge(rule: Rule, mark: Callable[[str, int, int], str]) -> Callable[[re.Match[str]], str]:
    """What replaces a match of one of KEYWORDS: itself where its value is no secret."""

    def replace(match: re.Match[str]) -> str:
        quoted = match["quoted"] if "quoted" in match.re.groupindex else None
        value = match["bare"] if quoted is None else quoted
        group = "bare" if quoted is None else "quoted"
        if quoted is None:
            trimmed = value if _MARK.search(value) else value.rstrip(")]}.,;")
            secret = _secret_in_prose(trimmed) if rule is PROSE else _secret_bare(match, value, trimmed)
            if not trimmed or not secret:
                return match[0]
            end = match.start(group) + len(trimmed)
        else:
            if ("f" in match["prefix"].lower() and "{" in value) or not _secret_quoted(bool(match["pass"]), value):
                return match[0]
            end = match.end(group)
        start = match.start(group)
        return match.string[match.start() : start] + mark("keyword", start, end) + match.string[end : match.end()]

    return replace


def secret_under(key: str, value: str) -> bool:
    """True where the value of such a key is a secret: `{"password": "…"}`."""
    name = _NAME.search(key[-64:])
    return name is not None and _secret_quoted(bool(name["pass"]), value)


def blank(secret: str) -> bool:
    """True for a form with nothing filled in: `ghp_xxxxxxxx`, `sk-your-key`."""
    return (
        set(secret[-10:]) <= set("xX*.-_")
        or secret.endswith(("...", "…"))
        or re.search(r"(?i)your[-_]|x{8}|-here\b", secret) is not None
    )


def no_value(value: str) -> bool:
    """True for what only stands where a secret would: a gap to fill, a variable, a call, a path, an address."""
    return _NOT_A_VALUE.fullmatch(value) is not None or blank(value)


def mixed(text: str) -> bool:
    """True where the longest run of letters and digits mixes them as only a machine does."""
    run = max(re.findall(r"[A-Za-z0-9]+", text), key=len, default="")
    kinds = (str.isdigit, str.isupper, str.islower)
    return all(sum(map(kind, run)) >= 2 for kind in kinds) and _WORDS.fullmatch(run) is None


def made(text: str) -> bool:
    """True where a part of a token looks like one: eight characters or more, with digits, and no words."""
    digits = len(re.findall(r"\d", text))
    case = not (text.islower() or text.isupper())
    return len(text) >= 8 and digits > (0 if case else 1) and _WORDS.fullmatch(text) is None


def words_or_call(value: str) -> bool:
    """True for words in any of the usual spellings, and for a call."""
    return _is_call(value) or _WORDS.fullmatch(value) is not None


def _secret_quoted(password: bool, value: str) -> bool:
    if len(value) < 4 or no_value(value):
        return False
    if password:
        return not (_WORDS.fullmatch(value) and _STEMS.search(value)) and "password" not in value.lower().split()
    return not re.search(r"\s", value) and _looks_made(value)


def _secret_bare(match: re.Match[str], value: str, trimmed: str) -> bool:
    if no_value(value) or no_value(trimmed) or _is_call(value) or "==" in match["op"]:
        return False
    words = _WORDS.fullmatch(trimmed)
    if (words or _CHAIN.fullmatch(trimmed)) and _STEMS.search(trimmed):
        return False
    # `DB_PASSWORD=letmein` and `?password=letmein` cannot be code, so plain letters are a value there
    plain = match["op"] == "=" and match["key"].isupper() and match.end("op") == match.start("bare")
    before = match.string[max(0, match.start() - 40) : match.start()]
    plain = plain or bool(re.search(r"[?&][\w.-]*\Z", before)) or match["op"] == ">"
    if match["pass"]:
        if plain:
            return len(trimmed) >= 4
        return len(trimmed) >= 6 and bool(re.search(r"[\d!@#$%^&*+?~]", trimmed)) and not (words and "." in trimmed)
    return (plain and len(trimmed) >= 8 and not _NUMBERS.fullmatch(trimmed)) or _looks_made(trimmed)


def _secret_in_prose(value: str) -> bool:
    """Stricter than behind `=`: a letter, a digit, and a mark that is neither at the end nor within a word."""
    if no_value(value) or _is_call(value) or _WORDS.fullmatch(value) or _NUMBERS.fullmatch(value):
        return False
    return all(re.search(kind, value) for kind in (r"[A-Za-z]", r"\d", r"[!@#$%^&*+?~][^\s]|[!@#$%^&*+~]\Z"))


def _looks_made(value: str) -> bool:
    """True for what a machine makes: not words in any of the usual spellings, not a number, date or version."""
    if len(value) < 8 or _NUMBERS.fullmatch(value) or _WORDS.fullmatch(value):
        return len(value) >= 24 and value.isalpha() and (value.islower() or value.isupper())
    return bool(re.search(r"[\d!@#$%^&*+/=~]", value)) or (value.isalpha() and len(value) >= 24)


def _is_call(value: str) -> bool:
    return _CALL.fullmatch(value) is not None and _MARK.search(value) is None
