"""The `kraftline` command: finds the verb's file, and turns errors into words and exit codes.

Exit codes: 0 fine, 1 found problems, 2 wrong use. Verbs are imported when asked for, so that a
small question gets a quick answer.
"""

from __future__ import annotations

import importlib
import os
import sys

import click

from kraftline import __version__
from kraftline.errors import KraftlineError, NotKafka

VERBS = {
    "dump": "print the records of segments, snapshots and whole directories",
    "info": "say what a file or directory is, and what is in it",
    "verify": "check everything, and say what is wrong and where",
    "image": "show the cluster as it stands, or stood at any moment",
    "diff": "say what is different between two moments",
    "changes": "tell what happened, in order and with causes",
    "why": "tell how a partition came to be as it is",
    "snapshot": "write a cluster's metadata as a new snapshot, as it was or mended",
    "format": "make directories ready for a node, as Kafka's storage tool does",
    "random-uuid": "draw an id for a cluster or a directory",
}


class Verbs(click.Group):
    """Loads `kraftline.cli.<verb>` when that verb is used."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in VERBS:
            return None
        module = cmd_name.replace("-", "_")
        command: click.Command = importlib.import_module(f"kraftline.cli.{module}").command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Verbs"):
            formatter.write_dl(list(VERBS.items()))


@click.command(cls=Verbs, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, message="kraftline %(version)s")
def verbs() -> None:
    """Reads and explains Apache Kafka's own files: no broker, no JVM.

    \b
    Examples:
      kraftline info /var/lib/kafka
      kraftline dump /var/lib/kafka/__cluster_metadata-0 --type TOPIC_RECORD
      kraftline verify --first /var/lib/kafka/__cluster_metadata-0
    """


def main() -> None:
    try:
        verbs(prog_name="kraftline")
    except BrokenPipeError:  # `kraftline dump … | head`: the reader has what it wanted
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
    except KeyboardInterrupt:
        sys.exit(130)
    except NotKafka as error:  # pointed at the wrong thing
        click.echo(f"kraftline: {error}", err=True)
        sys.exit(2)
    except (KraftlineError, OSError) as error:
        click.echo(f"kraftline: {error}", err=True)
        sys.exit(1)
