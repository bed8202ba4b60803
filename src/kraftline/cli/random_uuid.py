"""`kraftline random-uuid`: print a new id, for a cluster or a directory."""

from __future__ import annotations

import click

from kraftline.metadata.random_ids import random_uuid


@click.command(name="random-uuid")
def command() -> None:
    """Print a random uuid as Kafka writes them: 22 characters, never with a dash in front.

    \b
    Example:
      kraftline format --cluster-id $(kraftline random-uuid) --standalone -c server.properties
    """
    click.echo(str(random_uuid()))
