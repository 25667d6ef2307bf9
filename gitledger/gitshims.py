"""The texts of our git hooks: POSIX sh that hands git's words to the program, and never fails the user's work.

The same text on every machine, so that it can be committed where a team shares its hooks: where the program is
missing it does nothing, silently. Each part runs in a subshell that changes no option of the script it stands in.
"""

from __future__ import annotations

VERSION = 1
MARK = "# gitledger git hook"
"""How a line begins by which one of our own files is known."""
BEGIN = "# >>> gitledger"
END = "# <<< gitledger"
SHEBANG = "#!/bin/sh\n"
NEW = " (a file of its own)"
OPEN = " (after a line without end)"
KEPT = ".before-gitledger"
"""What is added to the name of a hook that was there before."""

USUAL = ("post-commit", "post-checkout", "post-merge", "post-rewrite")
OPTIONAL = ("prepare-commit-msg", "commit-msg", "pre-push", "reference-transaction")
"""Hooks that are installed only where they are asked for."""
NAMES = (*USUAL, *OPTIONAL)
HEEDED = frozenset(OPTIONAL)
"""Hooks whose exit status git heeds before it goes on: where the one before ours refuses, ours does nothing."""
FED = frozenset({"post-rewrite", "reference-transaction"})
"""Hooks whose stdin we read, so that the one before ours must be given it again."""

# In quotes apart, because lefthook takes `{0}` in its commands for a hook's arguments.
_NEWEST = '"@{"0"}"'
_LOG = (
    "GIT_NO_LAZY_FETCH=1 git -c log.showSignature=false log -1 --no-color --encoding=UTF-8 --name-only --no-renames "
    "--no-relative -m --first-parent"
)
_FORMAT = "id %H%nparents %P%n{branch}subject %s"

# A shell that a window system started may have a bare PATH.
_PROGRAM = """\
[ -z "$GITLEDGER_DISABLE" ] || exit 0
program=gitledger
command -v gitledger >/dev/null || {
    program=
    # Another user's file would choose what runs here.
    own=$(git rev-parse --git-common-dir)/gitledger
    [ -O "$own" ] && [ -O "$own/program" ] && read -r program <"$own/program"
    command -v "$program" >/dev/null || exit 0
}"""
# What it is told comes as a here-document: a pipe would be one more process.
_CALL = '"$program" -C "${GIT_DIR:-.}" hook git'

# The reflog of `@` names the branch in the same child; where there is none, the commit is told without.
_COMMIT = f"""\
said=$({_LOG} -g --format='{_FORMAT.format(branch="branch %gD%n")}' {_NEWEST} --)
[ -n "$said" ] || said=$({_LOG} --format='{_FORMAT.format(branch="")}' HEAD --)"""

_TRAILER = f"""\
text=$(sed '/^. -* >8 -*$/,$d' "$1" | git stripspace --strip-comments)
case $text in '' | fixup!* | squash!* | amend!* | *Ledger-Task:*) exit 0 ;; esac
{_PROGRAM}
task=$({_CALL} trailer) || exit 0
case $task in T-*) ;; *) exit 0 ;; esac
git interpret-trailers --no-divider --in-place --trailer "Ledger-Task: $task" "$1\""""

_WORK = {
    "post-commit": f"{_PROGRAM}\n{_COMMIT}\n{_CALL} commit <<GITLEDGER\n$said\nGITLEDGER",
    "post-merge": f"{_PROGRAM}\n{_COMMIT}\n{_CALL} merge <<GITLEDGER\nsquash $1\n$said\nGITLEDGER",
    "post-checkout": f"""\
[ "$3" = 1 ] || exit 0
{_PROGRAM}
branch=$(git symbolic-ref --quiet HEAD) || branch=HEAD
{_CALL} checkout <<GITLEDGER
old $1
new $2
branch $branch
GITLEDGER""",
    "post-rewrite": f"{_PROGRAM}\n{_CALL} rewrite <<GITLEDGER\nby $1\n$gitledger_in\nGITLEDGER",
    "prepare-commit-msg": f'[ "$2" = message ] || exit 0\n{_TRAILER}',
    "commit-msg": _TRAILER,
    "pre-push": f"{_PROGRAM}\nprintf 'pid %s\\n' \"$PPID\" | {_CALL} push &",
}
_READ = "gitledger_in=$(cat && echo .)\ngitledger_in=${gitledger_in%.}"
_GUARD = """\
[ "$1" = prepared ] || exit $status
case $gitledger_in in *" refs/heads/ledger/"*) ;; *) exit $status ;; esac
# What is in the way of the truth about ancestry must not be in ours.
GIT_NO_REPLACE_OBJECTS=1
GIT_GRAFT_FILE=/dev/null
export GIT_NO_REPLACE_OBJECTS GIT_GRAFT_FILE
refuse() {
    echo "gitledger: ${ref#refs/heads/} $1: it is only added to, by gitledger; see docs/git-hooks.md" >&2
    exit 1
}
while read -r old new ref; do
    case $ref in refs/heads/ledger/*) ;; *) continue ;; esac
    # Not $old, which is what the caller asked for and not what is there.
    now=$(git rev-parse --verify --quiet "$ref") || continue
    [ "$now" != "$new" ] || continue
    case $new in
    *[!0]*) ;;
    *)
        # Packing (so gc, before git 2.40) tells as deleted what stands in packed-refs as well; a true deletion has
        # that file locked by now.
        packed=$(git rev-parse --git-common-dir)/packed-refs
        [ "$old" = "$now" ] && [ ! -e "$packed.lock" ] && grep -Fqx "$now $ref" "$packed" 2>/dev/null && continue
        refuse "would be deleted"
        ;;
    esac
    git merge-base --is-ancestor "$now" "$new" 2>/dev/null || refuse "would lose commits"
done <<GITLEDGER
$gitledger_in
GITLEDGER"""


def file(name: str, kept: str) -> str:
    """The whole hook file `name`, which first calls the file `kept` beside it where there is one."""
    first = '"$prior" "$@"'
    lines = [
        "#!/bin/sh",
        f"{MARK} {VERSION} {name}, made by gitledger hooks install --git; changes here are lost",
        f"prior=${{0%/*}}/{kept}",
        "status=0",
    ]
    if name in FED:
        if name == "reference-transaction":
            lines.append('[ "$1" = prepared ] || [ -x "$prior" ] || exit 0  # nothing to read, and nobody else to ask')
        lines.append(_READ)
        first = f'printf %s "$gitledger_in" | {first}'
    lines += ['if [ -x "$prior" ]; then', f"    {first}", "    status=$?"]
    if name in HEEDED:
        lines.append("    [ $status = 0 ] || exit $status")
    lines.append("fi")
    if name == "reference-transaction":
        lines.append(_GUARD)
    else:  # a shell of its own, so it needs none within: each one costs as much as a third of a git child
        lines += ["exec </dev/null >/dev/null 2>&1", _WORK[name].replace("exit 0", "exit $status")]
    return "\n".join([*lines, "exit $status", ""])


def block(name: str) -> str:
    """Lines for a shell script that somebody else calls as hook `name`; the rest of it finds its stdin as it was."""
    lines = [f"{BEGIN} {VERSION} {name}; silent where gitledger is not installed"]
    if name in FED:
        lines.append(_READ)
    lines.append(_part(name))
    if name in FED:
        lines += ["exec <<GITLEDGER", "${gitledger_in%?}", "GITLEDGER"]
    return "\n".join([*lines, END, ""])


def command(name: str) -> str:
    """What a hook manager runs by `sh -c` in hook `name`, its arguments set by `set --` before."""
    if name == "reference-transaction":
        return f"{_READ}\nstatus=0\n{_GUARD}\n"
    return (f"{_READ}\n" if name in FED else "") + _part(name) + "\n"


def added(before: str, lines: str, after: str, *, new: bool = False) -> str:
    """Our lines put in between two parts of somebody else's file, or of a `new` one; `without` takes them out again."""
    if new:
        note = NEW
    elif before and not before.endswith("\n"):
        before, note = before + "\n", OPEN
    else:
        return before + lines + after
    begin, _, rest = lines.partition("\n")
    return f"{before}{begin}{note}\n{rest}{after}"


def without(text: str) -> str | None:
    """A file's text as it was before lines of ours were added; None where it was no file then."""
    before, begin, rest = text.partition(BEGIN)
    lines, end, after = rest.partition(END + "\n")
    if not begin or not end or (before and not before.endswith("\n")):
        return text
    first = lines.partition("\n")[0]
    if first.endswith(NEW) and before in ("", SHEBANG) and not after:
        return None
    return (before[:-1] if first.endswith(OPEN) else before) + after


def ours(text: str) -> tuple[int, str, str] | None:
    """The version, hook and kept file's name of one of our own files, or None for anybody else's."""
    lines = text.split("\n", 3)
    if len(lines) < 3 or not lines[1].startswith(MARK + " "):
        return None
    version, _, rest = lines[1][len(MARK) + 1 :].partition(" ")
    if not version.isdigit():
        return None
    return int(version), rest.partition(",")[0], lines[2].rpartition("/")[2]


def _part(name: str) -> str:
    """What hook `name` does, apart from the shell that it stands in."""
    lines, inside = [], False
    for line in _WORK[name].split("\n"):
        inside = inside and line != "GITLEDGER"
        lines.append(line if inside or line == "GITLEDGER" else f"    {line}")
        inside = inside or line.endswith("<<GITLEDGER")
    return "\n".join(["(", "    set +eu", *lines, ") </dev/null >/dev/null 2>&1 || :"])
