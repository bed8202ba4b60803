"""`kraftline history`: a lake of history, built from Kafka's files and asked about any moment."""

from __future__ import annotations

import click

from kraftline.cli.verbs import Verbs

_VERBS = {
    "build": "read Kafka's files into a lake, or what is new in them (with Spark)",
    "as-of": "show tables, or the whole cluster, as they stood at a moment",
    "diff": "say what is different between two moments",
    "changes": "tell what happened, in order",
    "health": "tell what was wrong, from when to when",
}


@click.command(name="history", cls=Verbs, said=_VERBS, start="history_")
def command() -> None:
    """Build a lake of a cluster's history, and ask it.

    A moment is an offset of the metadata log (digits) or a time (ISO-8601). Only `build` needs
    Java; the questions read the lake directly.

    \b
    Examples:
      kraftline history build --from /var/lib/kafka --to lake
      kraftline history as-of lake partitions --at 2026-03-01T03:12:00Z --topic orders
      kraftline history changes lake --since 2026-03-01T03:00Z --until 2026-03-01T03:30Z
      kraftline history health lake --topic orders
    """
