"""From a node's settings and the arguments of a command to what is to be formatted."""

from __future__ import annotations

import msgspec

from kraftline.config.java_numbers import java_integer
from kraftline.metadata.features import from_release
from kraftline.metadata.formatting import FormatRefused, FormatRequest
from kraftline.metadata.formatting_config import FormatConfig
from kraftline.metadata.random_ids import random_uuid
from kraftline.metadata.voters import InitialVoter, parse_voters


class FormatArguments(msgspec.Struct, frozen=True, kw_only=True):
    """The arguments of kafka-storage.sh format, as text. The three that say which quorum the
    node belongs to exclude each other; whoever parses them sees to that."""

    release_version: str | None = None
    features: tuple[str, ...] = ()
    standalone: bool = False
    initial_controllers: str | None = None
    no_initial_controllers: bool = False
    scram: tuple[str, ...] = ()
    ignore_formatted: bool = False


def format_request(
    settings: FormatConfig, cluster_id: str, asked: FormatArguments
) -> FormatRequest:
    unstable = settings.unstable_features
    release = asked.release_version
    return FormatRequest(
        node_id=settings.node_id,
        cluster_id=cluster_id,
        directories=tuple(sorted({*settings.log_dirs, settings.metadata_log_dir})),
        metadata_log_dir=settings.metadata_log_dir,
        controller_listener=settings.controller_listener,
        version=None if release is None else from_release(release, unstable=unstable),
        features=dict(_name_and_level(feature) for feature in asked.features),
        voters=_voters(settings, asked),
        dynamic_quorum=not settings.static_voters,
        scram=asked.scram,
        unstable_features=unstable,
        ignore_formatted=asked.ignore_formatted,
    )


def _voters(settings: FormatConfig, asked: FormatArguments) -> tuple[InitialVoter, ...]:
    initial = asked.initial_controllers
    if settings.static_voters and (asked.standalone or initial is not None):
        raise FormatRefused(
            "You cannot specify controller.quorum.voters and format the node with "
            "--initial-controllers or --standalone. If you want to use dynamic quorum, please "
            "remove controller.quorum.voters and specify controller.quorum.bootstrap.servers "
            "instead."
        )
    if initial is not None:
        return parse_voters(initial)
    controller = settings.controller
    if asked.standalone:
        if controller is None:
            raise FormatRefused("You can only use --standalone on a controller.")
        if controller[1] < 0:
            raise FormatRefused(f"Invalid port {controller[1]} in dynamic voter string.")
        return (InitialVoter(settings.node_id, *controller, random_uuid()),)
    if controller is not None and not settings.static_voters and not asked.no_initial_controllers:
        raise FormatRefused(
            "Because controller.quorum.voters is not set on this controller, you must specify "
            "one of the following: --standalone, --initial-controllers, or "
            "--no-initial-controllers."
        )
    return ()


def _name_and_level(text: str) -> tuple[str, int]:
    name, equals, level = text.partition("=")
    if not equals:
        raise FormatRefused(f"Can't parse feature=level string {text}: equals sign not found.")
    number = java_integer(level.strip(), bits=16)
    if number is None:
        raise FormatRefused(
            f"Can't parse feature=level string {text}: unable to parse {level.strip()} as a short."
            " A level is a number, as in group.version=1"
        )
    return name.strip(), number
