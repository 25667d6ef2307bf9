"""gitledger demo."""

from __future__ import annotations

import click

from gitledger.commands import put


@click.command()
@click.option("--keep", metavar="FOLDER", type=click.Path(exists=False), help="Keep the repository in a new folder.")
def command(keep: str | None) -> None:
    """Show a whole cycle in a temporary repository: start, work, checkpoint, end, and what the next session is told."""
    import os
    import shutil

    from gitledger import demo
    from gitledger.errors import CannotWrite, Missing

    for program, package in (("git", "git"), ("ssh-keygen", "OpenSSH")):
        if shutil.which(program) is None:
            raise Missing(f"the demo runs {program}, which is not on PATH; install {package}")
    if keep and os.path.lexists(keep):
        raise CannotWrite(f"{keep} exists already; name a folder that does not")
    demo.play(put, keep)
