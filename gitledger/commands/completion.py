"""gitledger completion."""

from __future__ import annotations

import click

from gitledger.commands import put

WHERE = {
    "bash": 'eval "$(gitledger completion bash)"  # in ~/.bashrc',
    "zsh": 'eval "$(gitledger completion zsh)"  # in ~/.zshrc',
    "fish": "gitledger completion fish | source  # in ~/.config/fish/config.fish",
}


@click.command()
@click.argument("shell", type=click.Choice(list(WHERE)))
def command(shell: str) -> None:
    """Print a shell's completion script, to be read by the shell as it starts."""
    from click.shell_completion import get_completion_class

    from gitledger.cli import group

    kind = get_completion_class(shell)
    if kind is None:
        raise AssertionError("click completes all shells that are offered")
    # `source_template` and not `source()`: that starts bash to look at its version, and complains of an old one.
    made = kind(group, {}, "gitledger", "_GITLEDGER_COMPLETE")
    put(f"# {WHERE[shell]}\n{(made.source_template % made.source_vars()).strip()}")
