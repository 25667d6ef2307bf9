"""Secrets out, before anything is hashed: rules by format, never by entropy alone.

`redact` replaces what a rule knows by `[redacted:<rule>]` and leaves the rest as it is, so it can run
twice without harm. It lowers the risk that a key travels with a ledger; it does not promise that none does: a
password in plain prose has no format. Every quantifier that can fail after a long run is bounded, and
every unbounded one ends a rule, so that time grows with the text and not with its square.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

from gitledger.model import Json

RULESET = "1"
"""The version of the rules; journalled with what they cleaned, so that a later rule can be told apart."""
DEEPEST = 100
"""Levels of lists and objects that `redact_json` enters; what lies deeper is named and dropped."""

_MARK = re.compile(r"\[redacted:[a-z0-9-]+\]")
_SURROGATE = re.compile(r"[\ud800-\udfff]")
# A letter or digit before a token makes it part of a longer word; `\n` written out, as in raw JSON, does not.
_START = r"(?:(?<![A-Za-z0-9])|(?<=\\[nrt]))"
_END = r"(?![A-Za-z0-9])"
_WORD = r"[A-Za-z0-9_-]"


@dataclass(frozen=True, slots=True)
class Rule:
    """One format. `hints` are lower-case texts of which one must occur before `pattern` is tried at all.

    The pattern's group `secret` is what is replaced, else all of it.
    """

    name: str
    hints: tuple[str, ...]
    pattern: str


def _token(name: str, hints: str, pattern: str) -> Rule:
    """A rule for a token that stands by itself."""
    return Rule(name, tuple(hints.split()), _START + pattern)


RULES: tuple[Rule, ...] = (
    _token("aws-key-id", "akia asia abia acca a3t", r"(?:A3T[A-Z0-9]|AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}" + _END),
    Rule(
        "aws-secret",
        ("secret",),
        r"(?i:secret_?access_?key|aws_?secret(?:_?key)?)\\{0,2}[\"']?\s{0,8}(?::=|=>|=|:)\s{0,8}\\{0,2}[\"']?"
        r"(?P<secret>[A-Za-z0-9/+]{40})(?![A-Za-z0-9/+=])",
    ),
    _token("github", "ghp_ gho_ ghu_ ghs_ ghr_", r"gh[pousr]_[A-Za-z0-9]{30,}"),
    _token("github", "github_pat_", r"github_pat_[A-Za-z0-9_]{40,}"),
    _token("gitlab", "gl", rf"gl(?:pat|dt|rt|cbt|ptt|ft|imt|agent|oas|soat|ffct|rtr)-{_WORD}{{20,}}(?:\.\w{{2,}})*"),
    _token("gitlab", "gr1348941", rf"GR1348941{_WORD}{{20,}}"),
    _token("slack", "xox", r"xox[a-z](?:\.xox[a-z])?-\d[A-Za-z0-9-]{9,}"),
    _token("slack", "xoxd", r"xoxd-[A-Za-z0-9%+/=]{40,}"),
    _token("slack", "xapp-", r"xapp-\d-[A-Za-z0-9-]{20,}"),
    Rule(
        "slack-webhook",
        ("hooks.slack",),
        r"hooks\.slack(?:-gov)?\.com/(?:services|workflows|triggers)/(?P<secret>[A-Za-z0-9+/_-]{20,})",
    ),
    _token("stripe", "sk_ rk_", r"[sr]k_(?:live|test|prod)_[A-Za-z0-9]{16,}"),
    _token("stripe", "whsec_", r"whsec_[A-Za-z0-9+/=]{24,}"),
    _token("anthropic", "sk-ant-", rf"sk-ant-{_WORD}{{20,}}"),
    _token("openai", "sk-", rf"sk-(?:(?:proj|svcacct|admin|None|or-v1|lf)-{_WORD}{{20,}}|[A-Za-z0-9]{{32,}})"),
    _token("google", "aiza", rf"AIza{_WORD}{{35,}}"),
    _token("google", "ya29.", rf"ya29\.{_WORD}{{20,}}"),
    _token("google", "gocspx-", rf"GOCSPX-{_WORD}{{20,}}"),
    _token("google", "1//0", rf"1//0{_WORD}{{30,}}"),
    _token("npm", "npm_", r"npm_[A-Za-z0-9]{36,}"),
    _token("pypi", "pypi-ag", rf"pypi-Ag{_WORD}{{40,}}"),
    _token("huggingface", "hf_ api_org_", r"(?:hf|api_org)_[A-Za-z0-9]{30,}"),
    _token("sendgrid", "sg.", rf"SG\.{_WORD}{{16,32}}\.{_WORD}{{16,}}"),
    _token("twilio", "sk", r"SK[0-9a-f]{32}" + _END),
    Rule("telegram", (":aa",), rf"(?:{_START}|(?<=bot))\d{{8,10}}:AA{_WORD}{{33,}}"),
    _token("discord", ".", rf"[MNO]{_WORD}{{23,27}}\.{_WORD}{{6}}\.{_WORD}{{27,}}"),
    Rule("discord-webhook", ("/webhooks/",), rf"/api(?:/v\d{{1,2}})?/webhooks/\d{{15,20}}/(?P<secret>{_WORD}{{60,}})"),
    Rule(
        "azure", ("accountkey", "sharedaccesskey"), r"(?i:AccountKey|SharedAccessKey)=(?P<secret>[A-Za-z0-9+/=]{40,})"
    ),
    Rule("azure", ("sig=",), r"[?&]sig=(?P<secret>[A-Za-z0-9%+/=]{40,})"),
    _token("supabase", "sb_secret_ sbp_", rf"(?:sb_secret_{_WORD}{{20,}}|sbp_[a-f0-9]{{40}}{_END})"),
    _token("digitalocean", "_v1_", r"do[opr]_v1_[a-f0-9]{64}" + _END),
    _token("vault", "hv", rf"hv[sbr]\.{_WORD}{{24,}}"),
    _token("docker", "dckr_", rf"dckr_(?:pat|oat)_{_WORD}{{20,}}"),
    _token("shopify", "shp", r"shp(?:at|ca|pa|ss)_[a-fA-F0-9]{32}" + _END),
    _token("databricks", "dapi", r"dapi[a-f0-9]{32}(?:-\d{1,2})?" + _END),
    _token("grafana", "gls glc_", r"(?:glsa|glc)_[A-Za-z0-9+/=_]{32,}"),
    _token("linear", "lin_", r"lin_(?:api|oauth)_[A-Za-z0-9]{32,}"),
    _token("postman", "pmak-", r"PMAK-[a-f0-9]{24}-[a-f0-9]{34}" + _END),
    _token("groq", "gsk_", r"gsk_[A-Za-z0-9]{40,}"),
    _token("xai", "xai-", r"xai-[A-Za-z0-9]{60,}"),
    _token("nvidia", "nvapi-", rf"nvapi-{_WORD}{{40,}}"),
    _token("replicate", "r8_", r"r8_[A-Za-z0-9]{36,}"),
    _token("rubygems", "rubygems_", r"rubygems_[a-f0-9]{48}" + _END),
    _token("atlassian", "atatt3", rf"ATATT3{_WORD}{{60,}}(?:=[A-F0-9]{{8,}})?"),
    _token("sentry", "sntry", rf"sntry[su]_(?:{_WORD}|[+/=.]){{40,}}"),
    _token("age", "age-secret-key-", r"AGE-SECRET-KEY-1[A-Z0-9]{50,}" + _END),
    _token(
        "jwt",
        "eyj",
        rf"eyJ{_WORD}{{10,512}}\.(?:eyJ{_WORD}{{8,}}(?:\.{_WORD}*)?|\.?{_WORD}{{16,}}(?:\.{_WORD}+){{2,}})",
    ),
    Rule(
        "uri-password",
        ("://",),
        r"://[^\s:@/?#\"'<>`]{0,128}:(?P<secret>(?!\d{1,5}[/?#])(?:(?!://)[^\s\"'<>`]){1,256})@",
    ),
    Rule(
        "authorization",
        ("authorization",),
        r"(?i:authorization)\\{0,2}[\"']?\]?\s{0,4}[:=,]\s{0,4}[fFbB]?\\{0,2}[\"'`]?"
        r"(?i:bearer|basic|token|apikey|key|negotiate)\s{1,4}(?P<secret>[^\s\"'`,;<>\\]{6,})",
    ),
    Rule("authorization", ("bearer ",), rf"{_START}[Bb]earer {{1,4}}(?P<secret>[A-Za-z0-9._~+/-]{{20,}}=*)"),
    Rule(
        "curl-user",
        ("curl",),
        r"\bcurl\b[^\n]{0,200}?\s(?:-u|--user)[ =]?[\"']?[^\s:\"']{1,64}:(?P<secret>[^\s\"']{3,})",
    ),
    Rule("netrc", ("login",), r"\blogin\s{1,8}[^\s\"']{1,64}\s{1,8}password\s{1,8}(?P<secret>[^\s\"'<>]{3,})"),
)

# Here and below, a group that gives nothing back is atomic, `(?>(?:…)+)`, never `(?:…)++`: Python before 3.11.5 matches
# that one wrongly (python/cpython#106052, #100061), and on Debian 12, which has 3.11.2, secrets would stay in.

# ── keyword = value: judged by the value ─────────────────────────────────────────────────────
_KEY = (
    r"(?P<key>(?P<pass>passw(?:or)?d|passphrase|(?<=_)pass|(?<=[;_])pwd)"
    r"|(?:api|access|secret|private|encrypt(?:ion)?|auth|account|master|service|consumer|signing)[_-]?key"
    r"|secret|token|credentials?)(?:[_-]?\d{1,2})?"
)
# A value ends where the next parameter begins, at white space, a quote, or an escape that is written out.
_BARE = r"(?:(?![,;&|](?:$|[\s\"'`<>]|[A-Za-z_][\w.-]{0,40}[=:])|\\[nrt\"'])[^\s\"'`<>])+"
_QUOTED = (
    r"(?P<prefix>[rRbBuUfF@$]{0,2})(?P<q>\\{0,3}[\"'`])"
    r"(?P<quoted>(?>(?:(?!(?P=q))(?:\\.|[^\\\n])){1,4096}))(?P=q)"
)
ASSIGNMENT = Rule(
    "keyword",
    ("pass", "pwd", "secret", "token", "credential", "key"),
    rf"(?i:{_KEY})\\{{0,2}}[\"'`]?\]?"
    # a type may stand between: `token: str = "…"`
    r"(?:[ \t]{0,8}:[ \t]{0,4}[&A-Za-z_][\w.<>|& \[\]]{0,30}?(?=[ \t]{0,4}=[^=]))?"
    rf"[ \t]{{0,8}}(?P<op>:=|=>|={{1,3}}|:)(?:\s{{0,20}}{_QUOTED}|[ \t]{{0,8}}[\"'`]?(?P<bare>{_BARE}))",
)
OPTION = Rule(
    "keyword",
    ("--",),
    rf"(?<![\w-])--[\w-]{{0,30}}?(?i:{_KEY})(?P<op>[ \t]{{1,4}})(?:{_QUOTED}|(?P<bare>{_BARE}))",
)
ELEMENT = Rule(
    "keyword",
    ("</",),
    rf"(?i:<[\w:.-]{{0,40}}?{_KEY})(?P<op>>)(?P<bare>[^<>\s]{{4,256}}+)(?=</)",
)
_NAME = re.compile(rf"(?i:{_KEY})\Z")
_STEMS = re.compile(r"(?i)pass|pwd|secret|token|cred|key")
_NOT_A_VALUE = re.compile(
    r"""(?xs)
    (?:\[redacted:[a-z0-9-]+\])+(?:@.*|[\])}.,;:]*) # done already
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
_CALL = re.compile(r"[A-Za-z_$][\w$]*(?:(?:\?\.|\.|::|->)[A-Za-z_$][\w$]*)*!?[(\[{].*", re.DOTALL)
_CHAIN = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+")
_NUMBERS = re.compile(r"[\d.,:/TZ%-]+")
_WORDS = re.compile(r"(?>(?:(?:[A-Z]?[a-z]{2,}+|[A-Z]{2,}+|[vV]?\d{1,2}(?!\d))[-_./: ]?)+)[)\]}.,;]*")


def redact(text: str) -> str:
    """`text` with every secret that a rule knows replaced by `[redacted:<rule>]`; a second run changes nothing.

    A lone surrogate becomes U+FFFD, so the answer can always be encoded.
    """
    text = _SURROGATE.sub("\ufffd", text)
    for _ in range(10):  # a secret gone, its neighbour may stand free; text without one is read once
        before, text = text, _once(text)
        if text == before:
            break
    return text


def redact_json(value: Json) -> Json:
    """`value` with every text in it redacted, keys too; a text under a key such as `password` is judged as its value.

    Two keys that become equal stay apart by a number, so nothing is dropped but what lies deeper than `DEEPEST`.
    """
    return _walk(value, "", DEEPEST)


def bounded(text: str, limit: int) -> str:
    """`text`, or its beginning and a mark that says how many characters were cut: at most `limit` characters in all.

    The mark itself is never cut, so a limit below its size gives the mark alone. The cut does not part a
    letter from its accents, an emoji from its parts, or a `[redacted:…]` in the middle.
    """
    if len(text) <= limit:
        return text
    room = max(0, limit - len(_cut_mark(len(text))))
    keep = _edge(text, room)
    return text[:keep] + _cut_mark(len(text) - keep)


# ── how a match is replaced ──────────────────────────────────────────────────────────────────
def _once(text: str) -> str:
    lower = text.lower()
    if "private" in lower:
        text = _private_keys(text)
    for rules, replacer in ((RULES, _replacer), ((ELEMENT, OPTION, ASSIGNMENT), lambda _: _judge)):
        for rule in rules:
            if any(hint in lower for hint in rule.hints):
                text = _compiled(rule.pattern).sub(replacer(rule.name), text)
    return text


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    # compiled at first need: all of them at import would cost more than the rest of a session's start
    return re.compile(pattern, re.ASCII)


def _replacer(name: str) -> Callable[[re.Match[str]], str]:
    def replace(match: re.Match[str]) -> str:
        group = "secret" if "secret" in match.re.groupindex else 0
        secret = match[group]
        if _blank(secret) or (group and _NOT_A_VALUE.fullmatch(secret)):
            return match[0]
        if name == "authorization" and (_is_call(secret) or _WORDS.fullmatch(secret)):
            return match[0]
        if name == "uri-password" and secret.lower() in ("password", "pass", "passwd", "pw", "pwd", "secret", "token"):
            return match[0]
        start, end = match.span(group)
        return match.string[match.start() : start] + f"[redacted:{name}]" + match.string[end : match.end()]

    return replace


def _blank(secret: str) -> bool:
    """True for a form with nothing filled in: `ghp_xxxxxxxx`, `sk-your-key`."""
    return set(secret[-10:]) <= set("xX*.-_") or re.search(r"(?i)your[-_]|x{8}|-here\b", secret) is not None


def _judge(match: re.Match[str]) -> str:
    quoted = match["quoted"] if "quoted" in match.re.groupindex else None
    value = match["bare"] if quoted is None else quoted
    group = "bare" if quoted is None else "quoted"
    if quoted is None:
        trimmed = value if _MARK.search(value) else value.rstrip(")]}.,;")
        if not trimmed or not _secret_bare(match, value, trimmed):
            return match[0]
        end = match.start(group) + len(trimmed)
    else:
        if ("f" in match["prefix"].lower() and "{" in value) or not _secret_quoted(bool(match["pass"]), value):
            return match[0]
        end = match.end(group)
    return match.string[match.start() : match.start(group)] + "[redacted:keyword]" + match.string[end : match.end()]


def _secret_quoted(password: bool, value: str) -> bool:
    if len(value) < 4 or _is_no_value(value):
        return False
    if password:
        return not (_WORDS.fullmatch(value) and _STEMS.search(value)) and "password" not in value.lower().split()
    return not re.search(r"\s", value) and _looks_made(value)


def _secret_bare(match: re.Match[str], value: str, trimmed: str) -> bool:
    if _is_no_value(value) or _is_no_value(trimmed) or _is_call(value) or "==" in match["op"]:
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


def _looks_made(value: str) -> bool:
    """True for what a machine makes: not words in any of the usual spellings, not a number, date or version."""
    if len(value) < 8 or _NUMBERS.fullmatch(value) or _WORDS.fullmatch(value):
        return len(value) >= 24 and value.isalpha() and (value.islower() or value.isupper())
    return bool(re.search(r"[\d!@#$%^&*+/=~]", value)) or (value.isalpha() and len(value) >= 24)


def _is_call(value: str) -> bool:
    return _CALL.fullmatch(value) is not None and _MARK.search(value) is None


def _is_no_value(value: str) -> bool:
    return _NOT_A_VALUE.fullmatch(value) is not None or _blank(value)


# ── private keys: blocks, also ones that were cut at either end ──────────────────────────────
_BEGIN = re.compile(r"-{4,5} ?BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)? ?-{4,5}")
_END_KEY = re.compile(r"-{4,5} ?END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)? ?-{4,5}")
_GAP = r"(?>(?:\\[rn]|[\s>|*#\"',-])*)"
_BODY = re.compile(
    rf"(?>(?:{_GAP}(?:[A-Za-z0-9+/]{{16,}}+={{0,2}}|(?:Proc-Type|DEK-Info|Comment|Version|Private-Lines):[^\n\\]*+))+)"
    rf"(?:(?:\\[rn]|\n)[A-Za-z0-9+/]{{1,15}}={{0,2}}(?=\\[rn]|\s*\n|\Z))?"
)
_BODY_REVERSED = re.compile(r"(?>(?:(?>(?:[nr]\\|[\s>|*#\"',-])*)(?:={0,2}[A-Za-z0-9+/]{4,}+))+)")
_PUTTY = re.compile(rf"(?<=Private-Lines: )\d{{1,4}}{_BODY.pattern}")
_LONGEST_KEY = 32_768


def _private_keys(text: str) -> str:
    parts: list[str] = []
    done = 0
    ends = [(m.start(), m.end()) for m in _END_KEY.finditer(text)]
    begins = [(m.start(), m.end()) for m in _BEGIN.finditer(text)]
    for i, (start, body) in enumerate(begins):
        following = begins[i + 1][0] if i + 1 < len(begins) else len(text)
        while ends and ends[0][0] < body:
            done = _orphan(text, done, *ends.pop(0), parts, limit=start)
        if ends and ends[0][0] < following and ends[0][0] - body <= _LONGEST_KEY:
            stop, block_end = ends.pop(0)
            if re.search(r"[A-Za-z0-9+/]{16}", text[body:stop]) is None:
                continue
        else:
            cut = _BODY.match(text, body, following)
            if cut is None:
                continue
            block_end = cut.end()
        parts += [text[done:start], "[redacted:private-key]"]
        done = block_end
    for start, end in ends:
        done = _orphan(text, done, start, end, parts, limit=start)
    text = "".join([*parts, text[done:]])
    return _PUTTY.sub("[redacted:private-key]", text) if "Private-Lines" in text else text


def _orphan(text: str, done: int, start: int, end: int, parts: list[str], limit: int) -> int:
    """Redact the tail of a key whose BEGIN was cut away; the new end of what is done."""
    if start > limit or start < done:
        return done
    lines = _BODY_REVERSED.match(text[max(done, start - _LONGEST_KEY) : start][::-1])
    if lines is None or re.search(r"[A-Za-z0-9+/]{16}", lines[0]) is None:
        return done
    parts += [text[done : start - lines.end()], "[redacted:private-key]"]
    return end


# ── values, and where to cut ─────────────────────────────────────────────────────────────────
def _walk(value: Json, key: str, depth: int) -> Json:
    if isinstance(value, str):
        return _under(key, redact(value))
    if not isinstance(value, (dict, list)) or not value:
        return value
    if not depth:
        return f"[… nested deeper than {DEEPEST} levels, cut]"
    if isinstance(value, list):
        return [_walk(item, key, depth - 1) for item in value]
    clean: dict[str, Json] = {}
    for name, item in value.items():
        shown = redact(name)
        number = 2
        while shown in clean:
            shown, number = f"{redact(name)}#{number}", number + 1
        clean[shown] = _walk(item, name, depth - 1)
    return clean


def _under(key: str, value: str) -> str:
    """`value` judged by the key that it stands under."""
    name = _NAME.search(key[-64:])
    if name and _secret_quoted(bool(name["pass"]), value):
        return "[redacted:keyword]"
    if "authorization" in key[-20:].lower():
        head = "authorization: "
        return redact(head + value).removeprefix(head)
    return value


def _cut_mark(count: int) -> str:
    return f"[… {count:,} characters cut]"


def _edge(text: str, at: int) -> int:
    """The nearest place at or before `at` where the text may be cut."""
    opened = text.rfind("[redacted:", max(0, at - 40), at + 9)
    if opened >= 0 and (mark := _MARK.match(text, opened)) and mark.end() > at:
        at = opened
    for back in range(at, max(0, at - 32), -1):
        before, after = text[back - 1], text[back]
        if not (
            unicodedata.category(after) in ("Mn", "Mc", "Me")
            or after in "\u200d\ufe0e\ufe0f"
            or "\U0001f3fb" <= after <= "\U0001f3ff"
            or "\udc00" <= after <= "\udfff"
            or before == "\u200d"
            or (before == "\r" and after == "\n")
        ):
            return back
    return at
