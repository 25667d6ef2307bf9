"""gitledger trust."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from gitledger.commands import json_option, opened, put, put_json

if TYPE_CHECKING:
    from gitledger.keys import Known
    from gitledger.ledger import Ledger
    from gitledger.model import Oid
    from gitledger.signing import Signer


@click.group()
def command() -> None:
    """List, add and revoke the keys that this machine believes.

    A ledger carries its writers' keys, so that every signature can be checked. That makes no key trusted: this clone
    believes its own key and those that trust add named. What another writer said is kept and checked, and its words
    stay out of briefing and status until a person accepts its key.
    """


@command.command("list")
@json_option
@click.pass_context
def list_(ctx: click.Context, as_json: bool) -> None:
    """List the ledger's first key, this clone's, and every writer's with what this clone makes of it."""
    from gitledger import genesis, keys
    from gitledger.errors import LedgerError
    from gitledger.render.text import line

    ledger = opened(ctx)
    tip, mine, me = ledger.tip(), keys.pinned(ledger.desk), ledger.desk.writer.id
    known = keys.listed(ledger.desk, tip, mine)
    try:
        first: genesis.Founder | None = genesis.founder(ledger.desk.store, tip, ledger.desk.home.name)
    except LedgerError as e:
        first = None
        click.echo(f"gitledger: {line(str(e))}", err=True)
    carried = {one.fingerprint for one in known} | {before.fingerprint for one in known for before in one.earlier}
    absent = [key for key in dict.fromkeys((*mine.fingerprints, *(k for k, _ in mine.revoked))) if key not in carried]
    if as_json:
        put_json(
            {
                "ledger": {"uuid": mine.uuid, "name": ledger.desk.home.name},
                "genesis": {
                    "commit": mine.genesis,
                    "fingerprint": mine.founder or (first.fingerprint if first else ""),
                    "writer": first.writer if first else "",
                },
                "writer": me,
                "writers": [_row(one, me) for one in known],
                "others": [
                    {"fingerprint": key, "trusted": key in mine.fingerprints, "revoked_here": _until(mine.until(key))}
                    for key in absent
                ],
            }
        )
        return
    put(f"Ledger   {line(mine.uuid)} (ledger/{ledger.desk.home.name})")
    begun = f" by {first.writer}" if first else ""
    put(f"Genesis  {line(mine.genesis)}{begun}")
    put(f"         {line(mine.founder or (first.fingerprint if first else 'its key cannot be read'))}")
    put("Writers")
    for one in known:
        put(f"  {line(one.writer, 16):<7}{one.fingerprint or 'its key cannot be read; see: gitledger fsck'}")
        put(f"         {_words(one, me)}")
        for before in one.earlier:
            word = ", trusted here" if before.fingerprint in mine.fingerprints else ""
            put(f"         until {line(before.until, 24)} {line(before.fingerprint, 64)}{word}")
    for key in absent:
        put(f"  -      {line(key)}")
        put(f"         {'trusted here' if mine.until(key) is None else 'revoked here'}; no writer has it")


@command.command()
@click.argument("who", metavar="WRITER|FINGERPRINT")
@click.option("--expect", default="", metavar="FINGERPRINT", help="What its owner reads; refuse any other key.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.pass_context
def add(ctx: click.Context, who: str, expect: str, yes: bool) -> None:
    """Believe a writer's key from now on, here.

    Compare the fingerprint with what its owner reads in their own gitledger trust list, over another channel than this
    ledger. Of a WRITER without --expect it is shown, and a person at a terminal is asked.
    """
    from gitledger import keys, signing
    from gitledger.errors import NotAllowed

    ledger = opened(ctx)
    known, fingerprint = _who(ledger, who)
    wanted = signing.read_fingerprint(expect) if expect else ""
    if known is None or known.writer != who:
        wanted = wanted or fingerprint  # a whole one was given, to be compared as --expect is
    if wanted and wanted != fingerprint:
        raise NotAllowed(
            f"the key of {who} is {fingerprint}, not {wanted}; nothing was changed: ask its owner which it is"
        )
    name = f"writer {known.writer}" if known else "a writer that this ledger does not carry yet"
    if not wanted:
        put(f"The key of {name}: {fingerprint}")
        _ask("Does its owner read the same, and shall this machine believe it?", yes, "give --expect FINGERPRINT")
    keys.change(ledger.desk, lambda mine: mine.trust(fingerprint))
    put(f"Trusted here: {fingerprint}, {name}\nNext: gitledger verify")


@command.command()
@click.argument("who", metavar="WRITER|FINGERPRINT")
@click.pass_context
def remove(ctx: click.Context, who: str) -> None:
    """Take trust add back: the key is a stranger's again, and its words are withheld."""
    from gitledger import keys
    from gitledger.errors import NotAllowed

    ledger = opened(ctx)
    _, fingerprint = _who(ledger, who)
    if fingerprint == _own(ledger):
        raise NotAllowed("this is the key that this clone signs with; replace it with: gitledger trust rotate")
    if fingerprint not in keys.pinned(ledger.desk).fingerprints:
        put(f"Not trusted here: {fingerprint}; nothing was changed")
        return
    keys.change(ledger.desk, lambda mine: mine.distrust(fingerprint))
    put(f"Not trusted here any more: {fingerprint}")


@command.command()
@click.argument("who", metavar="WRITER|FINGERPRINT")
@click.option(
    "--from", "since", default="", metavar="COMMIT", help="The first commit that does not count; else what comes next."
)
@click.option("--in-ledger", is_flag=True, help="End this clone's own key for everybody, in a signed commit.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.pass_context
def revoke(ctx: click.Context, who: str, since: str, in_ledger: bool, yes: bool) -> None:
    """Believe nothing more that a key signs, from the present tip on or from COMMIT on.

    What the key signed before stays. The place in the chain decides, never a date. With --in-ledger this clone's own
    key is ended for everybody, and the next gitledger init begins with a new one.
    """
    from gitledger import keys, reading
    from gitledger.errors import NoSuchRecord, NotAllowed

    ledger = opened(ctx)
    known, fingerprint = _who(ledger, who)
    first: Oid | None = None
    if since:
        found = reading.find_commit(ledger.desk.store, ledger.tip(), since)
        if found is None:
            raise NoSuchRecord(f"{since} is no commit of this ledger; list them with: gitledger log")
        first = found[0]
    own = fingerprint == _own(ledger)
    if in_ledger and (not own or (known and known.writer != ledger.desk.writer.id)):
        raise NotAllowed(
            f"only who holds the key {fingerprint} can end it for everybody; revoke it here without --in-ledger"
        )
    if own and not in_ledger:
        raise NotAllowed(
            "this is the key that this clone signs with; replace it first with gitledger trust rotate, "
            "or end it for everybody with --in-ledger"
        )
    if in_ledger:
        _ask(f"End the key {fingerprint} of this clone for everybody?", yes, "give --yes")
        me, mint = ledger.desk.writer.id, ledger.desk.mint
        ledger.commit(lambda view: keys.ending(view, me, mint))
    pinned = keys.revoke(ledger.desk, fingerprint, first)
    upto = ", ".join(oid[:12] for oid in pinned.until(fingerprint) or () if oid)
    counts = f"What it signed counts up to {upto}" if upto else "Nothing that it signed counts"
    put(f"Revoked here: {fingerprint}\n{counts}")
    if in_ledger:
        put("Revoked in the ledger for everybody who reads it\nNext: gitledger init begins with a new key")


@command.command()
@click.option("--to", default="", metavar="KEY", help="With signing.mode git: the user.signingkey that comes next.")
@click.pass_context
def rotate(ctx: click.Context, to: str) -> None:
    """Give this clone a new key; the commit that says so is signed by the old one.

    Other machines take the new key for this writer's, and believe it once they accept it there. Where the old key may
    be in other hands, revoke it as well: gitledger trust revoke FINGERPRINT --from COMMIT.

    With signing.mode git the new key is the one that git is set up with, or KEY: the old one must still be git's then,
    and user.signingkey is yours to change afterwards. A change of signing.mode takes effect by this command as well.
    """
    import shlex

    from gitledger import discover, keys
    from gitledger.errors import Usage
    from gitledger.render.text import line
    from gitledger.values import replace

    ledger = opened(ctx)
    desk, me, old = ledger.desk, ledger.desk.writer.id, _own(ledger)
    make: keys.Make = discover.new_key
    if desk.config.signing.mode == "git":
        signer = discover.git_signer(ledger.gitdir, to)

        def make(writer: str) -> tuple[str, Signer]:
            return "", signer

    elif to:
        raise Usage("--to names a key of git's, and signing.mode is key here; set it first: gitledger config set")
    else:  # the old key may be git's
        spare = (*desk.writer.spare, discover.git_signer(ledger.gitdir))
        desk = replace(desk, writer=replace(desk.writer, spare=spare))
    written, new = keys.rotate(desk, ledger.gitdir.common, make)
    put(
        f"Old key: {old}\n"
        f"New key: {new.fingerprint}\n"
        f"Commit:  {written.commit}\n"
        f"Next:    where this writer is believed: gitledger trust add {me} --expect {new.fingerprint}"
    )
    if to:
        put(f"Now:     git config user.signingkey {line(shlex.quote(to), 200)}")


def _who(ledger: Ledger, text: str) -> tuple[Known | None, str]:
    """The writer that `text` names, by id or by its present key, and the fingerprint that is meant."""
    from gitledger import keys, signing
    from gitledger.errors import BadData

    known = keys.listed(ledger.desk, ledger.tip(), keys.pinned(ledger.desk))
    for one in known:
        if one.writer == text:
            if not one.fingerprint:
                raise BadData(f"the key of writer {text} cannot be read; look at it with: gitledger fsck")
            return one, one.fingerprint
    if len(text) < 32:  # no fingerprint: a writer's id, or a part of something
        raise BadData(f"{text!r} is no writer of this ledger; list them with: gitledger trust list")
    fingerprint = signing.read_fingerprint(text)
    return next((one for one in known if one.fingerprint == fingerprint), None), fingerprint


def _own(ledger: Ledger) -> str:
    """The fingerprint of the key that the ledger has for this clone's writer, "" where it has none."""
    from gitledger import keys

    known = keys.listed(ledger.desk, ledger.tip(), keys.pinned(ledger.desk))
    return next((one.fingerprint for one in known if one.writer == ledger.desk.writer.id), "")


def _ask(question: str, yes: bool, otherwise: str) -> None:
    import sys

    from gitledger.errors import NotAllowed

    if yes:
        return
    if not sys.stdin.isatty():
        raise NotAllowed(f"nobody is here to be asked; {otherwise}, or ask a person at a terminal; nothing was changed")
    click.confirm(question, abort=True, err=True)


def _row(one: Known, me: str) -> dict[str, Any]:
    return {
        "writer": one.writer,
        "fingerprint": one.fingerprint,
        "own": one.writer == me,
        "status": _status(one),
        "trusted": one.trusted,
        "revoked_here": _until(one.until),
        "revoked_in_ledger": dict(one.ended) if one.ended else None,
        "earlier": [{"fingerprint": before.fingerprint, "until": before.until} for before in one.earlier],
    }


def _until(until: tuple[str, ...] | None) -> list[str] | None:
    return None if until is None else [oid for oid in until if oid]


def _status(one: Known) -> str:
    if not one.fingerprint:
        return "damaged"
    if one.until is not None or one.ended:
        return "revoked"
    return "trusted" if one.trusted else "unknown"


def _words(one: Known, me: str) -> str:
    from gitledger.render.text import line

    words = []
    if one.until is not None:
        upto = ", ".join(oid[:12] for oid in one.until if oid)
        words.append(f"revoked here: {f'counts up to {upto}' if upto else 'counts for nothing'}")
    if one.ended:
        words.append(f"revoked in the ledger at {line(str(one.ended.get('at', '')), 24)}")
    if not words and one.fingerprint:
        unknown = f"unknown: its words are withheld; accept it with: gitledger trust add {line(one.writer, 16)}"
        words.append("trusted here" if one.trusted else unknown)
    if one.writer == me:
        words.insert(0, "this clone")
    return "; ".join(words)
