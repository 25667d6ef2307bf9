"""Broken promises: every error gitledger raises, and the exit code it ends with.

A message is one line that says what, where, and the next step. Only `cli.py` prints one and exits.
Codes 64 and up follow sysexits.h, so that a script can tell "try again" from "mend something first".
"""


class LedgerError(Exception):
    """A promise that could not be kept; nothing was changed."""

    exit_code = 70  # EX_SOFTWARE: a child of this class says better


class Usage(LedgerError):
    """The words of the command do not fit."""

    exit_code = 2


class BadData(LedgerError):
    """Bytes from outside (a payload, a file, an id, a record) are not what they should be."""

    exit_code = 65  # EX_DATAERR


class NoSuchRecord(BadData):
    """An id names nothing in this ledger."""


class Missing(LedgerError):
    """Something that is needed is not here: a repository, a ledger, a program, an object."""

    exit_code = 69  # EX_UNAVAILABLE


class NotARepository(Missing):
    """The folder is in no git repository."""


class NoLedger(Missing):
    """The repository has no ledger yet."""


class MissingObject(Missing):
    """Git's object database lacks an object that something names."""


class Unsupported(Missing):
    """The repository is of a kind that gitledger cannot write yet."""


class Unscanned(Missing):
    """What looks for secrets failed: text that nobody has read may not be written."""


class CannotWrite(LedgerError):
    """A file, ref or folder cannot be created here."""

    exit_code = 73  # EX_CANTCREAT


class IOFailed(LedgerError):
    """Reading, writing or syncing failed under way: disk full, device gone."""

    exit_code = 74  # EX_IOERR


class TryAgain(LedgerError):
    """Somebody else was faster or holds a lock; the same command may succeed later."""

    exit_code = 75  # EX_TEMPFAIL


class StaleTip(TryAgain):
    """Another writer moved the ledger's ref first."""


class LockHeld(TryAgain):
    """A lock is held by a process that did not let go in time."""


class NotAllowed(LedgerError):
    """A rule or a person forbids it: an illegal transition, a missing proof, an untrusted signer."""

    exit_code = 77  # EX_NOPERM


class BadSignature(NotAllowed):
    """A signature is missing, wrong, or of another key than it should be."""


class BadConfig(LedgerError):
    """A configuration file or key is wrong."""

    exit_code = 78  # EX_CONFIG


class Blocked(LedgerError):
    """A checkpoint could not be made; ref, WAL, index, HEAD and work tree are as they were.

    Carries the exit code of what caused it, so that "try again" stays distinguishable.
    """

    def __init__(self, what: str, mend: str, *, cause: LedgerError | None = None) -> None:
        super().__init__(f"BLOCKED_MISSING_PREREQUISITE: {what}: {mend}")
        self.exit_code = cause.exit_code if cause else Missing.exit_code
