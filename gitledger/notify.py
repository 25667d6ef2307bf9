"""Reports to people, through the apprise library: Telegram, mail, a webhook, and whatever else it knows.

It is an extra (`pip install gitledger-continuity[notify]`), and the addresses are this machine's to name
(`notify.urls`). That a report did not arrive is told, and undoes nothing.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Sequence

from gitledger.errors import Missing
from gitledger.redact import redact

BODY_LIMIT = 3_500
"""Characters of a message; Telegram takes 4,096."""


def send(urls: Sequence[str], title: str, text: str) -> tuple[str, ...]:
    """Send one message to every address; what went wrong, a line for each address that did not take it.

    `title` is the subject of a mail; elsewhere the text stands alone.

    Raises Missing where addresses are named and the library is not installed. Secrets are taken out of the text.
    """
    if not urls:
        return ()
    try:
        import apprise
    except ImportError as e:
        raise Missing(
            "notify.urls names addresses, and the library for them is not installed; "
            "install it by: pip install 'gitledger-continuity[notify]'"
        ) from e
    body = _bounded(str(redact(text)))
    faults = []
    heard = _Heard()
    logger = logging.getLogger("apprise")
    level, spread = logger.level, logger.propagate
    logger.addHandler(heard)
    logger.setLevel(logging.WARNING)
    logger.propagate = False  # its lines quote addresses, which hold passwords
    try:
        for url in urls:
            heard.rows.clear()
            one = apprise.Apprise()
            try:
                if not one.add(url):
                    faults.append(f"{_shown(url)} is no address that apprise knows; mend notify.urls")
                    continue
                subject = title if url.startswith("mailto") else ""
                if one.notify(body=body, title=subject, body_format=apprise.NotifyFormat.TEXT):
                    continue
                why = heard.rows[-1] if heard.rows else ""
            except Exception as e:  # of whatever speaks to that service; the others are to be told nevertheless
                why = f"{type(e).__name__}: {e}"
            faults.append(f"{_shown(url)} did not take the message" + (f" ({_clean(why, url)})" if why else ""))
    finally:
        logger.removeHandler(heard)
        logger.setLevel(level)
        logger.propagate = spread
    return tuple(faults)


class _Heard(logging.Handler):
    """What the library says while it sends."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.rows: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.rows.append(record.getMessage())


def _shown(url: str) -> str:
    """An address by its scheme alone: the rest of it may be a token or a password."""
    found = re.match(r"[A-Za-z][A-Za-z0-9+.-]{0,20}(?=://)", url)
    return f"the {found[0]} address" if found else "an address"


def _clean(text: str, url: str) -> str:
    rest = url.partition("://")[2]
    for piece in sorted(re.split(r"[/:@?&=]", rest), key=len, reverse=True):
        if len(piece) >= 4:
            text = text.replace(piece, "…")
    return " ".join(str(redact(text)).split())[:200]


def _bounded(text: str) -> str:
    if len(text) <= BODY_LIMIT:
        return text
    kept = text[: BODY_LIMIT - 60].rpartition("\n")[0] or text[: BODY_LIMIT - 60]
    return f"{kept}\n… and {len(text) - len(kept):,} characters more; see: gitledger memory log"
