"""A nightly run: a line of cron's, or a timer of systemd's, put in and taken out; nobody else's line is touched."""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import subprocess
from collections.abc import Mapping, Sequence

from gitledger.errors import CannotWrite, LedgerError, Missing, NotAllowed, Usage
from gitledger.values import dataclass

MARK = "# gitledger-memory"
"""What ends a line of cron's that is ours, with which clone and ledger behind it."""
LONGEST = 990
"""Characters of a line that every cron takes."""
KEPT = (
    "PATH",
    "LANG",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "XDG_STATE_HOME",
    "CLAUDE_CONFIG_DIR",
    "CODEX_HOME",
    "HERMES_HOME",
    "NANOBOT_CONFIG",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "NODE_EXTRA_CA_CERTS",
    "REQUESTS_CA_BUNDLE",
)
"""What a proposer needs of the environment, and cron does not give; nothing that may hold a key or a password."""
PROXIES = tuple(form(f"{name}_PROXY") for name in ("HTTP", "HTTPS", "ALL", "NO") for form in (str, str.lower))
"""And these, unless an address in them has a name or a password before its host."""
_AT = re.compile(r"([01]?[0-9]|2[0-3]):([0-5][0-9])")
_DEADLINE = 30.0


@dataclass(frozen=True, slots=True)
class Nightly:
    """What is to run, and when: `id` tells this clone's ledger from all others."""

    hour: int
    minute: int
    command: tuple[str, ...]
    environment: tuple[tuple[str, str], ...]
    id: str


def nightly(at: str, command: Sequence[str], common: str, ledger: str, environ: Mapping[str, str]) -> Nightly:
    """The run of `command` at a time such as `02:00`; raise Usage for no time, NotAllowed for what no line can hold."""
    found = _AT.fullmatch(at)
    if found is None:
        raise Usage(f"{at!r} is no time of day; say it like 02:00")
    kept = {name: environ[name] for name in KEPT if environ.get(name)}
    kept |= {name: environ[name] for name in PROXIES if environ.get(name) and "@" not in environ[name]}
    if "PATH" in kept:
        kept["PATH"] = os.pathsep.join(dict.fromkeys(p for p in kept["PATH"].split(os.pathsep) if os.path.isdir(p)))
    if any(not word.isprintable() for word in (*command, *kept.values())):
        raise NotAllowed(
            "a path or a variable holds a character that no line of cron can hold; rename the folder, or mend PATH"
        )
    return Nightly(int(found[1]), int(found[2]), tuple(command), tuple(kept.items()), identity(common, ledger))


def identity(common: str, ledger: str) -> str:
    """What tells the line of one clone's ledger from every other."""
    return hashlib.sha256(f"{common}\0{ledger}".encode("utf-8", "surrogateescape")).hexdigest()[:12]


# ── cron ─────────────────────────────────────────────────────────────────────────────────────
def cron_line(run: Nightly) -> str:
    """The line for a crontab, without its end."""
    words = [f"{name}={shlex.quote(value)}" for name, value in run.environment] + [shlex.quote(w) for w in run.command]
    said = " ".join(words).replace("%", "\\%")  # which cron takes for a line end
    line = f"{run.minute} {run.hour} * * * {said} >/dev/null {MARK} {run.id}"
    if len(line) > LONGEST:
        raise NotAllowed(
            f"the line would have {len(line)} characters, mostly of PATH, and cron takes {LONGEST}; "
            "shorten PATH, or use --systemd"
        )
    return line


def with_line(crontab: str, line: str, id: str) -> str:  # noqa: A002
    """A crontab with our line in it once, everything else as it was."""
    rest = without_line(crontab, id)
    return f"{rest}{'' if not rest or rest.endswith(chr(10)) else chr(10)}{line}\n"


def without_line(crontab: str, id: str) -> str:  # noqa: A002
    """A crontab without our line, everything else as it was."""
    rows = crontab.splitlines(keepends=True)
    return "".join(row for row in rows if not row.rstrip("\r\n").endswith(f" {MARK} {id}"))


def install_cron(run: Nightly) -> str:
    """Put the line into the user's crontab; the line."""
    line = cron_line(run)
    before = _crontab()
    _write_crontab(with_line(before, line, run.id))
    if line not in _crontab().splitlines():
        raise CannotWrite("crontab took the line and does not show it; put it in by hand: crontab -e")
    return line


def remove_cron(id: str) -> bool:  # noqa: A002
    """Take our line out of the user's crontab; False where it was not there."""
    try:
        before = _crontab()
    except Missing:
        return False
    after = without_line(before, id)
    if after == before:
        return False
    _write_crontab(after)
    return True


def _crontab() -> str:
    done = _run(["crontab", "-l"])
    if done.returncode and "no crontab" not in done.stderr.lower():
        raise CannotWrite(f"the crontab cannot be read ({_last(done.stderr)}); see: crontab -l")
    return "" if done.returncode else done.stdout


def _write_crontab(text: str) -> None:
    done = _run(["crontab", "-r"]) if not text else _run(["crontab", "-"], text)
    if done.returncode:
        raise CannotWrite(f"the crontab cannot be written ({_last(done.stderr)}); it is as it was")


# ── systemd ──────────────────────────────────────────────────────────────────────────────────
def units(run: Nightly) -> dict[str, str]:
    """The files of the timer, by name."""
    name = f"gitledger-memory-{run.id}"
    variables = "".join(f"Environment={_systemd(f'{key}={value}', '')}\n" for key, value in run.environment)
    return {
        f"{name}.service": (
            "[Unit]\nDescription=gitledger memory compact\n\n[Service]\nType=oneshot\n"
            f"{variables}ExecStart={' '.join(_systemd(word, '$') for word in run.command)}\n"
        ),
        f"{name}.timer": (
            "[Unit]\nDescription=gitledger memory compact, every night\n\n[Timer]\n"
            f"OnCalendar=*-*-* {run.hour:02d}:{run.minute:02d}:00\nPersistent=true\n\n"
            "[Install]\nWantedBy=timers.target\n"
        ),
    }


def install_systemd(run: Nightly, environ: Mapping[str, str]) -> list[str]:
    """Put the timer in and start it; the paths of its files. Raises with its files as they were before."""
    folder = _folder(environ)
    made = {os.path.join(folder, name): text for name, text in units(run).items()}
    before: dict[str, str | None] = {}
    try:
        os.makedirs(folder, exist_ok=True)
        for path, text in made.items():
            before[path] = _text(path)
            with open(path, "w", encoding="utf-8") as f:
                f.write(text)
    except OSError as e:
        _put_back(before)
        raise CannotWrite(f"{folder} cannot be written ({e.strerror}); nothing was put in") from e
    timer = os.path.basename(list(made)[1])
    for words in (["daemon-reload"], ["enable", "--now", timer]):
        try:
            done = _run(["systemctl", "--user", *words])
        except LedgerError:
            _put_back(before)
            raise
        if done.returncode:
            _put_back(before)
            raise CannotWrite(f"systemctl --user {words[0]} failed ({_last(done.stderr)}); nothing was put in")
    return list(made)


def _text(path: str) -> str | None:
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as f:
            return f.read()
    except FileNotFoundError:
        return None


def _put_back(before: Mapping[str, str | None]) -> None:
    for path, text in before.items():
        if text is None:
            _unlink([path])
            continue
        with open(path, "w", encoding="utf-8", errors="surrogateescape") as f:
            f.write(text)


def remove_systemd(id: str, environ: Mapping[str, str]) -> bool:  # noqa: A002
    """Stop the timer and take its files away; False where there were none."""
    folder = _folder(environ)
    paths = [os.path.join(folder, f"gitledger-memory-{id}.{kind}") for kind in ("service", "timer")]
    if not any(os.path.lexists(path) for path in paths):
        return False
    done = _run(["systemctl", "--user", "disable", "--now", os.path.basename(paths[1])])
    _unlink(paths)
    if done.returncode == 0:
        _run(["systemctl", "--user", "daemon-reload"])
    return True


def _folder(environ: Mapping[str, str]) -> str:
    base = environ.get("XDG_CONFIG_HOME", "")
    return os.path.join(base if os.path.isabs(base) else os.path.expanduser("~/.config"), "systemd", "user")


def _systemd(word: str, more: str) -> str:
    quoted = word.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%")
    return f'"{quoted.replace(more, more * 2) if more else quoted}"'


def _unlink(paths: Sequence[str]) -> None:
    for path in paths:
        try:
            os.unlink(path)
        except FileNotFoundError:
            pass


def _run(words: list[str], text: str = "") -> subprocess.CompletedProcess[str]:
    try:
        done = subprocess.run(
            words,
            input=text.encode("utf-8", "surrogateescape"),
            capture_output=True,
            timeout=_DEADLINE,
            check=False,
            env={**os.environ, "LC_ALL": "C"},
        )
    except FileNotFoundError as e:
        raise Missing(f"there is no {words[0]} here; put the line in by hand where your nightly runs are") from e
    except (OSError, subprocess.TimeoutExpired) as e:
        raise CannotWrite(f"{words[0]} does not answer ({e}); nothing was changed") from e
    # Not by `text`, which makes a newline of every carriage return in somebody else's lines.
    out, err = (data.decode("utf-8", "surrogateescape") for data in (done.stdout, done.stderr))
    return subprocess.CompletedProcess(words, done.returncode, out, err)


def _last(text: str) -> str:
    return (text.strip().splitlines() or ["it said nothing"])[-1][:200]
