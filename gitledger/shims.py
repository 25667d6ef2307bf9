"""The command that a client's settings hold: one line for `/bin/sh`, the same on every machine and in every version.

It finds the program on PATH, or where this clone says that it is. Where neither is, or where no ledger is here, it ends
at once, silently, with 0: settings travel with a repository to people who have no gitledger. Only a compaction fails
closed, and only in a clone that has a ledger.

A change of one byte here makes Codex ask its user again whether it may run: it trusts a command by its digest.
"""

from __future__ import annotations

import re
from typing import Literal, NamedTuple, TypeAlias

Refusal: TypeAlias = Literal["", "status", "json"]
"""How a client is told that it may not compact: not at all, by exit 2, or by a JSON object."""

WATCH = 40
"""Seconds after which the shell ends a compaction's program. Longer than the program's own deadline, and shorter than
the client's timeout: a client whose hook times out compacts all the same."""

_MARK = re.compile(r": gitledger ([a-z0-9-]+) ([a-z]+); ")
# The clone's own git folder, by the shell alone: git may not be on a bare PATH, and takes longer than all the rest. A
# linked work tree's `.git` is a file that names its git folder, and that has a file which names the common one.
_FOLDER = (
    'w() { cd -P . 2>/dev/null; d=$PWD; while [ "$d" ] && [ ! -e "$d/.git" ]; do d=${d%/*}; done; g=$d/.git; '
    'if [ -f "$g" ]; then read -r k g <"$g"; case $g in (/*) ;; (*) g=$d/$g ;; esac; fi; '
    'if [ -f "$g/commondir" ]; then read -r k <"$g/commondir"; case $k in (/*) g=$k ;; (*) g=$g/$k ;; esac; fi; }; '
)
# Another user's file would choose what runs here: in a shared folder anybody can make a `.git`.
_PROGRAM = (
    "p=gitledger; command -v $p >/dev/null 2>&1 || { w; p=; "
    '[ -O "$g/gitledger" ] && [ -O "$g/gitledger/program" ] && read -r p <"$g/gitledger/program"; '
    'command -v "$p" >/dev/null 2>&1 || p=; }; '
)
# What a client sends is read by somebody, or its pipe breaks; it may never close the pipe, so nobody waits.
_DRAIN = "{ cat <&3 >/dev/null 2>&1 3<&- & } 3<&0"
# The output is held back until it is known to be whole. The watch lets go of all streams, or its caller would wait.
_WATCHED = (
    'o=$({{ "$p" hook {client} compact <&3 3<&- 2>&4 4>&- & c=$!; '
    '(sleep {watch} & s=$!; trap "kill $s" TERM; wait $s && kill -9 $c) >/dev/null 3<&- 4>&- & t=$!; '
    "wait $c; r=$?; kill $t; exit $r; }} 3<&0 4>&2 2>/dev/null); r=$?; "
)
_WHY = (
    "BLOCKED_MISSING_PREREQUISITE: no checkpoint was made, for the program gitledger is gone or failed (exit $r): "
    "install or mend it; to let one compaction through say gitledger compaction allow --once --reason WHY, "
    "or start this client with GITLEDGER_DISABLE=1"
)
_REFUSE = {
    "status": f'echo "gitledger: {_WHY}" >&2; exit 2',
    "json": f'printf "{{\\"continue\\":false,\\"stopReason\\":\\"%s\\"}}\\n" "gitledger: {_WHY}"',
}


class Mark(NamedTuple):
    """Which event of which client a command of ours was made for."""

    client: str
    event: str


def script(client: str, event: str, refusal: Refusal = "") -> str:
    """The text for `/bin/sh -c`; it holds no single quote."""
    head = f": gitledger {client} {event}; {_FOLDER}{_PROGRAM}"
    if event != "compact":
        # A status other than 0 would lose the text, block a prompt, or make a turn that never ends.
        return f'{head}[ "$p" ] || {{ {_DRAIN}; exit 0; }}; "$p" hook {client} {event} 2>/dev/null; exit 0'
    if not refusal:
        return f'{head}[ "$p" ] || {{ {_DRAIN}; exit 0; }}; "$p" hook {client} compact || exit 1'
    run = _WATCHED.format(client=client, watch=WATCH)
    told = '[ $r = 0 ] && { [ "$o" ] && printf "%s\\n" "$o"; exit 0; }; '
    passed = "[ $r = 2 ] && exit 2; " if refusal == "status" else ""
    here = 'w; [ -d "$g/gitledger/wal" ] && [ ! "$GITLEDGER_DISABLE" ] || exit 0; '
    return f'{head}r=127; if [ "$p" ]; then {run}else {_DRAIN}; fi; {told}{passed}{here}{_REFUSE[refusal]}'


def command(client: str, event: str, refusal: Refusal = "") -> str:
    """The whole command line, which any shell reads alike."""
    return f"/bin/sh -c '{script(client, event, refusal)}'"


def program(words: str) -> str:
    """The text for `/bin/sh -c` that runs the program that a hook here would find; exit 127 where it is gone."""
    return f': gitledger; {_FOLDER}{_PROGRAM}[ "$p" ] || exit 127; exec "$p" {words}'


def mark(text: object) -> Mark | None:
    """Which event a command of ours, of this version or another one, is for; None for somebody else's."""
    found = _MARK.search(text) if isinstance(text, str) else None
    return Mark(found[1], found[2]) if found else None
