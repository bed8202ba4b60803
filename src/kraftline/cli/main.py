"""The `kraftline` command: finds the verb's file, and turns errors into words and exit codes.

Exit codes: 0 fine, 1 found problems, 2 wrong use. Verbs are imported when asked for, so that a
small question gets a quick answer.
"""

from __future__ import annotations

import os
import sys

import click

from kraftline import __version__
from kraftline.cli.verbs import Verbs
from kraftline.errors import KraftlineError, NotKafka

VERBS = {
    "dump": "print the records of segments, snapshots and whole directories",
    "info": "say what a file or directory is, and what is in it",
    "verify": "check everything, and say what is wrong and where",
    "image": "show the cluster as it stands, or stood at any moment",
    "diff": "say what is different between two moments",
    "changes": "tell what happened, in order and with causes",
    "why": "tell how a partition came to be as it is",
    "history": "build a lake of a cluster's history, and ask it",
    "report": "write a page of pictures that tells what happened, from a lake",
    "topic-data": "write the records of topics as Parquet or Delta (with Spark)",
    "snapshot": "write a cluster's metadata as a new snapshot, as it was or mended",
    "format": "make directories ready for a node, as Kafka's storage tool does",
    "start": "run a Kafka node: broker and controller, no JVM",
    "random-uuid": "draw an id for a cluster or a directory",
}


def _version(ctx: click.Context, param: click.Parameter, asked: bool) -> None:
    if asked and not ctx.resilient_parsing:
        from kraftline.records import kernel

        click.echo(f"kraftline {__version__}\nhot loops: {kernel.describe()}")
        ctx.exit()


@click.command(cls=Verbs, said=VERBS, context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--version",
    is_flag=True,
    expose_value=False,
    is_eager=True,
    callback=_version,
    help="Show the version, and whether the hot loops are compiled.",
)
def verbs() -> None:
    """Reads and explains Apache Kafka's own files, and serves them as a node: no JVM.

    \b
    Examples:
      kraftline info /var/lib/kafka
      kraftline dump /var/lib/kafka/__cluster_metadata-0 --type TOPIC_RECORD
      kraftline verify --first /var/lib/kafka/__cluster_metadata-0
      kraftline start
    """


def main() -> None:
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # closed by the shell (`>&-`): nobody wants to see it
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115 (up to the end)
    try:
        verbs(prog_name="kraftline")
    except NotKafka as error:  # pointed at the wrong thing
        click.echo(f"kraftline: {error}", err=True)
        sys.exit(2)
    except (KraftlineError, OSError) as error:
        click.echo(f"kraftline: {error}", err=True)
        sys.exit(1)
