"""`kraftline format`: make the log directories of a node ready for its first start."""

from __future__ import annotations

import click

from kraftline.cli.kafka_arguments import KafkaCommand
from kraftline.cli.options import PATH
from kraftline.config.effective import read_config
from kraftline.metadata.directories import cluster_of
from kraftline.metadata.features import FEATURES, LATEST_PRODUCTION, MINIMUM
from kraftline.metadata.formatting import bootstrap_words, format_directories, plan_format
from kraftline.metadata.formatting_config import FormatConfig, format_config
from kraftline.metadata.formatting_request import FormatArguments, format_request
from kraftline.metadata.random_ids import random_uuid

_QUORUM = ("--standalone", "--no-initial-controllers", "--initial-controllers")
_OWN = ("--log-dir", "--node-id", "--controller-listener")
_LISTENER = "CONTROLLER://localhost:9093"
_VERSIONS = f"{MINIMUM} to {LATEST_PRODUCTION}"
_EMPTY = "--cluster-id is empty: was a variable not set? `kraftline random-uuid` makes one"


@click.command(name="format", cls=KafkaCommand, own=_OWN, exclusive=_QUORUM)
@click.option("--cluster-id", "-t", help="The id of the cluster; without --config one is drawn.")
@click.option("--config", "-c", type=PATH, metavar="FILE", help="The node's server.properties.")
@click.option(
    "--log-dir",
    type=PATH,
    metavar="DIR",
    multiple=True,
    help="Without --config: a directory; may be repeated.",
)
@click.option("--node-id", type=int, help="Without --config: the node's id.  [default: 1]")
@click.option(
    "--controller-listener",
    metavar="NAME://HOST:PORT",
    help=f"Without --config: where its controller will listen.  [default: {_LISTENER}]",
)
@click.option(
    "--release-version",
    "-r",
    metavar="RELEASE",
    help=f"Features of that release, such as 4.3 or 3.9-IV0 ({_VERSIONS}).  "
    f"[default: {LATEST_PRODUCTION}]",
)
@click.option(
    "--feature",
    "-f",
    "features",
    multiple=True,
    metavar="NAME=LEVEL",
    help=f"Another level than the release's, such as group.version=0, of {', '.join(FEATURES)}; "
    "may be repeated.",
)
@click.option("--standalone", "-s", is_flag=True, help="A controller that is a quorum by itself.")
@click.option(
    "--initial-controllers",
    "-I",
    metavar="ID@HOST:PORT:DIRECTORY,...",
    help="The voters of a new dynamic quorum; the same on all nodes.",
)
@click.option(
    "--no-initial-controllers", "-N", is_flag=True, help="Join a dynamic quorum that is there."
)
@click.option(
    "--add-scram",
    "-S",
    multiple=True,
    metavar="MECHANISM=[...]",
    help="A user: 'SCRAM-SHA-256=[name=alice,password=secret]'; also iterations, salt, "
    "saltedpassword.",
)
@click.option("--ignore-formatted", "-g", is_flag=True, help="Leave formatted directories alone.")
def command(
    cluster_id: str | None,
    config: str | None,
    log_dir: tuple[str, ...],
    node_id: int | None,
    controller_listener: str | None,
    release_version: str | None,
    features: tuple[str, ...],
    standalone: bool,
    initial_controllers: str | None,
    no_initial_controllers: bool,
    add_scram: tuple[str, ...],
    ignore_formatted: bool,
) -> None:
    """Format the log directories of a node, as kafka-storage.sh does: Kafka starts from them.

    Each gets meta.properties and the seed of the cluster's metadata (bootstrap.checkpoint); the
    metadata log directory of a dynamic quorum also a snapshot with its voters. Nothing is written
    unless all of it makes sense.

    Exit code 0: formatted; 1: refused; 2: wrong use.

    \b
    Examples:
      kraftline format --log-dir /tmp/kraft
      kraftline format -t $(kraftline random-uuid) -c server.properties --standalone
      kraftline format -t CLUSTER -c server.properties --release-version 3.9 \\
        --add-scram 'SCRAM-SHA-512=[name=alice,password=secret]'
    """
    if config is None:
        if cluster_id == "":
            raise click.UsageError(_EMPTY)
        settings = _without_file(log_dir, node_id, controller_listener)
        standalone = not (initial_controllers is not None or no_initial_controllers)
    else:
        if log_dir or node_id is not None or controller_listener is not None:
            raise click.UsageError(
                "--log-dir, --node-id and --controller-listener are for use without --config"
            )
        if cluster_id is None:
            raise click.UsageError("--cluster-id is needed: `kraftline random-uuid` makes one")
        if not cluster_id:
            click.echo(f"kraftline: {_EMPTY}", err=True)
        settings = format_config(read_config(config))
    cluster = cluster_of(settings.log_dirs) or str(random_uuid())
    request = format_request(
        settings,
        cluster if cluster_id is None else cluster_id,
        FormatArguments(
            release_version=release_version,
            features=features,
            standalone=standalone,
            initial_controllers=initial_controllers,
            no_initial_controllers=no_initial_controllers,
            scram=add_scram,
            ignore_formatted=ignore_formatted,
        ),
    )
    plan = plan_format(request)
    for path in plan.unreadable:
        click.echo(f"I/O error trying to read log directory {path}. Ignoring...")
    if not plan.directories:
        click.echo("All of the log directories are already formatted.")
        return
    if cluster_id is None:
        click.echo(f"Cluster id: {request.cluster_id}")
    click.echo(f"Bootstrap metadata: {', '.join(bootstrap_words(plan.bootstrap))}")
    format_directories(plan, click.echo)


def _without_file(
    log_dirs: tuple[str, ...], node_id: int | None, listener: str | None
) -> FormatConfig:
    """The settings of a node that is broker and controller at once."""
    if not log_dirs:
        raise click.UsageError("give --config server.properties, or at least one --log-dir")
    name = (listener or _LISTENER).partition("://")[0].upper()
    given = {
        "process.roles": "controller",
        "node.id": str(1 if node_id is None else node_id),
        "listeners": listener or _LISTENER,
        "listener.security.protocol.map": f"{name}:PLAINTEXT",
        "controller.listener.names": name,
        "controller.quorum.bootstrap.servers": "localhost:9093",
        "log.dirs": ",".join(log_dirs),
    }
    return format_config(read_config(None, given))
