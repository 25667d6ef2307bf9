"""Configuration: the project's policy from its ledger, then this clone's file, then the user's; the later one wins.

What can start a program or reach a network is read from the two files only. Loading YAML and pydantic takes longer
than all the rest of a session's start, so what they said about the same bytes is kept beside the clone's file, in
`config.cache`: it can be deleted at any time, and is ignored when anything about it is odd.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Mapping

from gitledger import __version__, gitdir, schema
from gitledger.digests import sha256
from gitledger.errors import BadConfig, CannotWrite, Missing, TryAgain
from gitledger.model import Finding, Json
from gitledger.schema import Config
from gitledger.typed import Any
from gitledger.values import asdict, dataclass

LEDGER = "the ledger"
DEFAULT = "default"
BIGGEST = 256 * 1024
"""Bytes of a configuration file; a larger one is refused."""

_PAIRS = (("freshness", "fresh_hours", "stale_hours"), ("rollover", "checkpoint_percent", "fresh_percent"))
"""Sections in which the first key may not exceed the second."""


@dataclass(frozen=True, slots=True)
class Source:
    """Where values come from, the ledger or a file's path, and its values by dotted key."""

    name: str
    values: dict[str, Json]


def load(ledger_values: Mapping[str, Json], common: str, environ: Mapping[str, str]) -> tuple[Config, list[Finding]]:
    """The configuration that holds in the repository whose common git folder is `common`, and what was left out.

    `ledger_values` has dotted keys or tables; what is unknown, wrong or not the ledger's to say in it is a finding.
    In a file it is a BadConfig that names file, line and key.
    """
    sources, findings = _sources(ledger_values, common, environ)
    return _built({key: value for source in sources for key, value in source.values.items()}), findings


def origins(ledger_values: Mapping[str, Json], common: str, environ: Mapping[str, str]) -> dict[str, str]:
    """For every dotted key where its value comes from: `default`, `the ledger`, or a file's path."""
    sources, _ = _sources(ledger_values, common, environ)
    found = dict.fromkeys(flat(Config()), DEFAULT)
    return found | {key: source.name for source in sources for key in source.values}


def flat(config: Config) -> dict[str, Json]:
    """Every value by its dotted key, in the order of the documentation; lists as lists."""
    return {
        f"{name}.{key}": list(value) if isinstance(value, tuple) else value
        for name, section in asdict(config).items()
        for key, value in section.items()
    }


def get(config: Config, dotted: str) -> Json:
    """The value of a dotted key; raise BadConfig for one that is not known, with the nearest that is."""
    values = flat(config)
    if dotted not in values:
        raise BadConfig(f"{_unknown(dotted)}; list them with: gitledger config list")
    return values[dotted]


def clone_path(common: str) -> str:
    """The configuration file of this clone, whether or not it exists."""
    return os.path.join(gitdir.state(common), "config.yaml")


def user_path(environ: Mapping[str, str], platform: str = sys.platform) -> str:
    """The user's configuration file, in the folder that platformdirs would name; "" where there is no home."""
    base = environ.get("XDG_CONFIG_HOME", "")
    if not os.path.isabs(base):
        home = environ.get("HOME", "")
        if not os.path.isabs(home):
            home = _home()
        if not os.path.isabs(home):
            return ""
        base = os.path.join(home, "Library/Application Support" if platform == "darwin" else ".config")
    return os.path.join(base, "gitledger", "config.yaml")


# ── sources ──────────────────────────────────────────────────────────────────────────────────
def _sources(
    ledger_values: Mapping[str, Json], common: str, environ: Mapping[str, str]
) -> tuple[list[Source], list[Finding]]:
    users = user_path(environ)
    found = [(clone_path(common), _read(clone_path(common))), (users, _read(users, users=True) if users else b"")]
    files = [(path, data) for path, data in found if data]
    policy = _flattened(ledger_values)
    if not files and not policy:
        return [], []
    seen: list[Json] = [__version__, repr(Config()), policy, *([path, data.hex()] for path, data in files)]
    key = sha256(json.dumps(seen, sort_keys=True, default=repr).encode()).hexdigest()
    cache = os.path.join(gitdir.state(common), "config.cache")
    cached = _cached(cache, key)
    if cached:
        return cached
    sources: list[Source] = []
    findings: list[Finding] = []
    if policy:
        kept, findings = _from_ledger(policy)
        sources.append(Source(LEDGER, kept))
    sources += [Source(path, _from_file(path, data)) for path, data in files]
    findings += _agreeing(sources)
    _cache(cache, key, sources, findings)
    return sources, findings


def _from_ledger(policy: dict[str, Json]) -> tuple[dict[str, Json], list[Finding]]:
    findings, kept = [], {}
    for dotted, value in policy.items():
        if dotted.partition(".")[0] in schema.MACHINE_ONLY:
            what = "is this machine's to say, so the ledger's value is not used"
            findings.append(_finding(dotted, what, "set it here with: gitledger config set"))
        else:
            kept[dotted] = value
    for where, what in schema.read_settings(_nested(kept)):
        findings.append(_finding(where, what, "mend it in the ledger's configuration"))
        for dotted in [d for d in kept if d == where or where.startswith(f"{d}[") or d.startswith(f"{where}.")]:
            del kept[dotted]
    if schema.read_settings(
        _nested(kept)
    ):  # a fault whose key was not told from its path: better none than a wrong one
        return {}, findings
    return kept, findings


def _from_file(path: str, data: bytes) -> dict[str, Json]:
    from gitledger import yamlfile  # most have no configuration, and what it says is remembered

    document = yamlfile.parse(path, data)
    values = _flattened(document.values)
    faults = []
    for where, what in schema.read_settings(_nested(values)):
        dotted = where.partition("[")[0]
        line = document.lines.get(dotted, 1)
        faults.append((line, f"line {line}: {_unknown(dotted) if what == 'unknown key' else f'{where} {what}'}"))
    if faults:
        told = "; ".join(text for _, text in sorted(faults))
        raise BadConfig(f"{path}: {told}; mend the file, its keys are listed by: gitledger schema config")
    return values


def _agreeing(sources: list[Source]) -> list[Finding]:
    """Findings for pairs of values that contradict each other; a ledger's give way, and two files' are a BadConfig."""
    findings = []
    for section, low, high in _PAIRS:
        keys = (f"{section}.{low}", f"{section}.{high}")

        def contradict(section: str = section, low: str = low, high: str = high) -> bool:
            merged = getattr(_built({k: v for source in sources for k, v in source.values.items()}), section)
            return bool(getattr(merged, low) > getattr(merged, high))

        if contradict() and sources[0].name == LEDGER:
            for key in keys:
                if sources[0].values.pop(key, None) is not None:
                    findings.append(_finding(key, f"{keys[0]} would exceed {keys[1]}, so it is not used", "change one"))
        if contradict():
            paths = " and ".join(s.name for s in sources if set(keys) & s.values.keys())
            raise BadConfig(f"{paths}: {keys[0]} exceeds {keys[1]}; change one of them")
    return findings


def _built(values: dict[str, Json]) -> Config:
    sections: dict[str, dict[str, Any]] = {}
    for dotted, value in values.items():
        name, _, key = dotted.partition(".")
        sections.setdefault(name, {})[key] = tuple(value) if isinstance(value, list) else value
    return Config(**{name: schema.SECTIONS[name](**keys) for name, keys in sections.items()})


def _flattened(values: Mapping[str, Json]) -> dict[str, Json]:
    """Tables as dotted keys; null means not set."""
    found: dict[str, Json] = {}
    for name, value in values.items():
        if isinstance(value, dict):
            found |= {f"{name}.{key}": inner for key, inner in value.items() if inner is not None}
        elif value is not None:
            found[name] = value
    return found


def _nested(values: dict[str, Json]) -> dict[str, Json]:
    found: dict[str, Json] = {}
    for dotted, value in values.items():
        name, _, key = dotted.partition(".")
        if key and isinstance(found.setdefault(name, {}), dict):
            found[name][key] = value
        else:
            found[name] = value
    return found


def _unknown(dotted: str) -> str:
    from difflib import get_close_matches

    known = list(flat(Config()))
    near = get_close_matches(dotted, known, 1) or [k for k in known if dotted and k.endswith(f".{dotted}")][:1]
    return f"unknown key {dotted}" + (f" (did you mean {near[0]}?)" if near else "")


def _finding(where: str, what: str, mend: str) -> Finding:
    return Finding("config", f"the ledger's configuration: {where}", what, mend)


def _home() -> str:
    # as platformdirs does where HOME is no absolute path; os.path.expanduser would read HOME from the process
    try:
        import pwd

        return pwd.getpwuid(os.getuid()).pw_dir
    except (ImportError, KeyError):
        return ""


def _read(path: str, *, users: bool = False) -> bytes:
    """The bytes of a file, b"" where there is none."""
    try:
        data = gitdir.read_own(path, BIGGEST + 1, follow=users)
    except (FileNotFoundError, NotADirectoryError):
        return b""
    except OSError as e:
        raise BadConfig(f"{path} cannot be read ({e.strerror}); mend or move it") from e
    if len(data) > BIGGEST:
        raise BadConfig(f"{path} is larger than {BIGGEST // 1024} KiB; take out what is no configuration")
    return data


# ── the cache ────────────────────────────────────────────────────────────────────────────────
def _cached(path: str, key: str) -> tuple[list[Source], list[Finding]] | None:
    try:
        check, _, body = gitdir.read_own(path, BIGGEST).partition(b"\n")
        if sha256(body).hexdigest().encode() != check:
            return None
        kept = json.loads(body)
        if kept["key"] != key:
            return None
        return [Source(*source) for source in kept["sources"]], [Finding(*finding) for finding in kept["findings"]]
    except (OSError, CannotWrite, ValueError, KeyError, TypeError, RecursionError):
        return None


def _cache(path: str, key: str, sources: list[Source], findings: list[Finding]) -> None:
    if not os.path.isdir(os.path.dirname(path)):
        return  # no ledger here: nothing is written
    told = [[f.rule, f.where, f.what, f.mend] for f in findings]
    body = json.dumps({"key": key, "sources": [[one.name, one.values] for one in sources], "findings": told}).encode()
    try:
        _replace(path, sha256(body).hexdigest().encode() + b"\n" + body, 0o600)
    except OSError:
        pass  # a full or read-only disk costs time only


def _replace(path: str, data: bytes, mode: int, *, durable: bool = False) -> None:
    temporary = f"{path}.{os.urandom(6).hex()}"
    fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    try:
        with open(fd, "wb") as f:
            f.write(data)
            if durable:
                os.fchmod(f.fileno(), mode)
                f.flush()
                os.fsync(f.fileno())
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


# ── setting a value ──────────────────────────────────────────────────────────────────────────
def set_value(path: str, dotted: str, text: str, *, users: bool = False) -> None:
    """Set a key in the file at `path`; its other lines and its comments stay as they are.

    `text` is what a person typed: a list is words as in a shell, or `["a", "b"]`. For the user's own file, as against
    a clone's, the folder is made, and a symlink to somewhere else, as keepers of dotfiles use, stays one. Raises
    BadConfig for a key or value that does not fit, and for a file written in a way that cannot be edited safely: it is
    then for a person to edit.
    """
    from gitledger import yamlfile

    value = typed(dotted, text)
    path = os.path.realpath(path) if users else path
    before = _read(path)
    document = yamlfile.parse(path, before)
    section, _, key = dotted.partition(".")
    wanted = {name: dict(v) if isinstance(v, dict) else v for name, v in document.values.items()}
    table = wanted.get(section) or {}
    if isinstance(table, dict):
        wanted[section] = {**table, key: value}
    edited = yamlfile.with_value(document, section, key, value)
    try:
        fits = bool(edited) and yamlfile.parse(path, edited.encode()).values == wanted
    except (BadConfig, UnicodeEncodeError):
        fits = False
    if not fits:
        raise BadConfig(f"{path} is written in a way that cannot be edited safely; set {dotted} in it by hand")
    folder = os.path.dirname(path)
    try:
        if users:
            os.makedirs(folder, mode=0o700, exist_ok=True)
        if not os.path.isdir(folder):
            raise Missing(f"the folder {folder} is not there; begin a ledger first with: gitledger init")
        if _read(path) != before:
            raise TryAgain(f"{path} was changed meanwhile; run the command again")
        mode = os.stat(path).st_mode & 0o777 if before else 0o600
        _replace(path, edited.encode(), mode, durable=True)
    except OSError as e:
        raise CannotWrite(
            f"{path} cannot be written ({e.strerror}); mend the folder's permissions or free space"
        ) from e


def typed(dotted: str, text: str) -> Json:
    """The value that a person typed for a key; raise BadConfig for a key or value that does not fit."""
    value = _typed(dotted, text, get(Config(), dotted))
    for _, what in schema.read_settings(_nested({dotted: value})):
        raise BadConfig(f"{dotted} cannot be {text!r}: {what}")
    return value


def _typed(dotted: str, text: str, default: Json) -> Json:
    words = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}
    if isinstance(default, bool):
        if text.strip().lower() not in words:
            raise BadConfig(f"{dotted} is true or false, not {text!r}")
        return words[text.strip().lower()]
    if isinstance(default, int):
        if not re.fullmatch(r"\s*\d{1,9}\s*", text, re.ASCII):
            raise BadConfig(f"{dotted} is a whole number, not {text!r}")
        return int(text)
    if not isinstance(default, list):
        return text
    try:
        if text.lstrip().startswith("["):
            return json.loads(text)
        import shlex

        return shlex.split(text)
    except ValueError as e:
        raise BadConfig(f'{dotted} is a list, such as: ["a", "b"]; {text!r} is not ({e})') from e
