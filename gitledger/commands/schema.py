"""gitledger schema."""

from __future__ import annotations

import click

from gitledger.commands import put_json


@click.command()
@click.argument("name", metavar="changeset|config|generic-payload")
def command(name: str) -> None:
    """Print a JSON Schema (2020-12): of a change set, the configuration, or the generic client's payload."""
    from gitledger import schema

    put_json(schema.json_schema(name))
