"""`kraftline snapshot`: write a cluster's metadata as a new snapshot, as it was or mended."""

from __future__ import annotations

from collections.abc import Sequence

import click

from kraftline.cli.metadata_log import log_bytes, moment
from kraftline.cli.options import PATH, format_option
from kraftline.cli.progress import Bar
from kraftline.cli.snapshot_output import show_edited, show_written
from kraftline.cli.verbs import Verbs
from kraftline.inspect.history import Unanswerable
from kraftline.inspect.history.moments import Moment
from kraftline.inspect.snapshots import (
    DeleteTopic,
    Edit,
    Refused,
    RemoveBroker,
    State,
    edit_state,
    for_release,
    losses,
    parse_config,
    parse_unset,
    read_state,
    target_of,
    write_state,
)
from kraftline.metadata.features import UnsupportedFeature, from_release
from kraftline.metadata.voters import BadVoter, InitialVoter, parse_voters

_VERBS = {
    "write": "write the state at an offset as a snapshot, as Kafka would have",
    "edit": "write one with something mended, and say what is different",
}


@click.command(name="snapshot", cls=Verbs, said=_VERBS)
def command() -> None:
    """Write snapshots of a cluster's metadata: as it was at an offset, or mended.

    Both verbs read a metadata directory (or a log directory, or a snapshot) and write a new file;
    they change nothing that is there.

    \b
    Examples:
      kraftline snapshot write /var/lib/kafka --as-of 41200 --out /tmp
      kraftline snapshot edit /var/lib/kafka --remove-broker 3 --out /tmp
    """


def _voters(
    ctx: click.Context, param: click.Parameter, value: str | None
) -> tuple[InitialVoter, ...] | None:
    try:
        return None if value is None else parse_voters(value)
    except BadVoter as error:
        raise click.BadParameter(str(error), ctx, param) from None


def _state(paths: Sequence[str], as_of: Moment | None) -> State:
    # All of a log is read once for its headers, and once for its records.
    with Bar(lambda: 2 * log_bytes(paths), "replaying") as bar:
        try:
            return read_state(paths, as_of, bar.advance)
        except Unanswerable as error:
            raise click.BadParameter(str(error), param_hint="--as-of") from None


_paths = click.argument("paths", nargs=-1, required=True, type=PATH, metavar="PATH...")
_out = click.option(
    "--out",
    required=True,
    type=PATH,
    metavar="FILE",
    help="The new file; in a directory, by Kafka's name.",
)
_as_of = click.option(
    "--as-of", metavar="OFFSET|TIME", callback=moment, help="The state then.  [default: newest]"
)
_listener = click.option(
    "--controller-listener", metavar="NAME", help="Of the voters.  [default: as it is]"
)
_force = click.option("--force", is_flag=True, help="Replace the file if it is there.")
_accept = click.option("--accept-loss", is_flag=True, help="Write although something is lost.")
_VOTERS = "ID@HOST:PORT:DIRECTORY,..."


@command.command(name="write")
@_paths
@_out
@_as_of
@click.option("--release-version", metavar="R", help="For that release, such as 4.0 or 3.9-IV0.")
@click.option("--voters", metavar=_VOTERS, callback=_voters, help="Other voters.")
@_listener
@_accept
@_force
@format_option
def write(
    paths: tuple[str, ...],
    out: str,
    as_of: Moment | None,
    release_version: str | None,
    voters: tuple[InitialVoter, ...] | None,
    controller_listener: str | None,
    accept_loss: bool,
    force: bool,
    form: str,
) -> None:
    """Write the state at an offset as a snapshot, as Kafka would have.

    Several PATHs are copies of one log, from several nodes. For an older release, what that
    release cannot say is listed, and only left out with --accept-loss. A node of that release
    starts only if bootstrap.checkpoint is moved away too, where it names a newer version.

    Exit code 0: written; 1: refused; 2: wrong use, or not Kafka's.

    \b
    Examples:
      kraftline snapshot write /var/lib/kafka --out /tmp
      kraftline snapshot write __cluster_metadata-0 --as-of 41200 --out /tmp
      kraftline snapshot write __cluster_metadata-0 --release-version 4.0 --out /tmp

    How a node starts from it: see `kraftline snapshot edit --help`.
    """
    state = _state(paths, as_of)
    if release_version is not None:
        try:
            version = from_release(release_version)
        except UnsupportedFeature as error:
            raise click.BadParameter(str(error), param_hint="--release-version") from None
        state, lost = for_release(state, version)
    else:
        lost = losses(state)
    quorum: Sequence[str] = ()
    if voters is not None:
        edited = edit_state(state, (), voters=voters, listener=controller_listener)
        state, quorum = edited.state, edited.quorum
    _check_loss(state, lost, accept_loss)
    changed = voters is not None or release_version is not None
    path = target_of(out, state, force=force, edited=changed)
    with Bar(None, "writing"):
        written = write_state(state, path, accept_loss=accept_loss)
    show_written(form, written, state.notes, lost, quorum)


def _check_loss(state: State, lost: Sequence[str], accepted: bool) -> None:
    if lost and not accepted:
        version = state.image.features.metadata_version
        raise Refused(
            f"metadata.version {version} has no words for all of it; this would be lost:",
            lost,
            "--accept-loss writes it without.",
        )


@command.command(name="edit")
@_paths
@_out
@_as_of
@click.option(
    "--remove-broker", "brokers", multiple=True, type=int, metavar="ID", help="And its replicas."
)
@click.option("--delete-topic", "topics", multiple=True, metavar="NAME", help="And its configs.")
@click.option(
    "--set-config", "configs", multiple=True, metavar="TYPE:NAME:KEY=VALUE", help="Empty: unset."
)
@click.option("--unset", multiple=True, metavar="TYPE:NAME:KEY", help="Back to the default.")
@click.option("--voters", metavar=_VOTERS, callback=_voters, help="These and no others.")
@_listener
@click.option("--delete-orphans", is_flag=True, help="Delete topics with no replica elsewhere.")
@click.option("--unclean", is_flag=True, help="Let replicas lead that are not in sync.")
@_accept
@_force
@format_option
def edit(
    paths: tuple[str, ...],
    out: str,
    as_of: Moment | None,
    brokers: tuple[int, ...],
    topics: tuple[str, ...],
    configs: tuple[str, ...],
    unset: tuple[str, ...],
    voters: tuple[InitialVoter, ...] | None,
    controller_listener: str | None,
    delete_orphans: bool,
    unclean: bool,
    accept_loss: bool,
    force: bool,
    form: str,
) -> None:
    """Write a snapshot of the state with something mended, and say what is different.

    All edits may be repeated and combined. A broker is taken out of all replica lists with its
    registration; where no replica in sync is left, nothing is written unless --delete-orphans or
    --unclean says so. TYPE is topic, broker (an empty NAME is all brokers), group or
    client-metrics. A voter that goes loses its registration as a controller.

    Exit code 0: written; 1: refused; 2: wrong use, or not Kafka's.

    \b
    Examples:
      kraftline snapshot edit /var/lib/kafka --remove-broker 3 --out /tmp
      kraftline snapshot edit /var/lib/kafka --delete-topic huge --out /tmp \\
          --set-config topic:orders:retention.ms=86400000 --unset broker::ssl.truststore.type

    \b
    How a cluster starts from it:
      1. Stop all nodes.
      2. On one controller, whose directory it was made from: move __cluster_metadata-0 away (it
         is the way back), and make a new one with the snapshot in it, under the name that
         is printed, and with the old quorum-state. Nothing else is needed: Kafka begins a new
         log at the snapshot. Owner and rights as before.
      3. With several controllers: the same file on all of them.
      4. Start the controllers, then the brokers. A broker that still has the old log sees from
         the snapshot's epoch, which is new, that it must fetch the snapshot.

    Data of topics that were deleted so is set aside (-stray) by brokers when they start.
    """
    edits: list[Edit] = [
        *map(RemoveBroker, brokers),
        *map(DeleteTopic, topics),
    ]
    try:
        edits += [*map(parse_config, configs), *map(parse_unset, unset)]
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    if not edits and voters is None:
        raise click.UsageError("nothing to change; `kraftline snapshot write` writes it as it is")
    state = _state(paths, as_of)
    with Bar(None, "editing"):
        edited = edit_state(
            state,
            edits,
            voters=voters,
            listener=controller_listener,
            delete_orphans=delete_orphans,
            unclean=unclean,
        )
    _check_loss(edited.state, losses(edited.state), accept_loss)
    path = target_of(out, edited.state, force=force, edited=True)
    with Bar(None, "writing"):
        written = write_state(edited.state, path, accept_loss=accept_loss)
    show_edited(form, edited, written)
