"""Formatting: making log directories that a node of a new cluster, Kafka's or ours, starts from.

Every directory gets meta.properties and bootstrap.checkpoint; the metadata log directory of a
dynamic quorum also a first snapshot with the voters. As in Kafka, meta.properties is written
last: a directory that was interrupted counts as not formatted and can be formatted again.
"""

from __future__ import annotations

import enum
import os
from collections.abc import Callable, Iterator, Mapping

import msgspec

from kraftline.errors import KraftlineError
from kraftline.metadata.add_scram import MECHANISMS, parse_scram
from kraftline.metadata.bootstrap import (
    BootstrapMetadata,
    bootstrap_of,
    write_bootstrap_metadata,
)
from kraftline.metadata.directories import ReadDirectories, check_agreement, read_directories
from kraftline.metadata.features import (
    FEATURES,
    KRAFT_VERSION,
    LATEST_PRODUCTION,
    LATEST_TESTING,
    METADATA_VERSION,
    VERSIONS,
    MetadataVersion,
    check_features,
    check_known,
    check_stable,
    feature_defaults,
    from_level,
)
from kraftline.metadata.random_ids import random_uuid
from kraftline.metadata.voters import InitialVoter, voters_record
from kraftline.schema.metadata.feature_level_record import FeatureLevelRecord
from kraftline.schema.metadata.user_scram_credential_record import UserScramCredentialRecord
from kraftline.schema.uuids import Uuid
from kraftline.storage import meta_properties
from kraftline.storage.files import sync_directory, unwritable
from kraftline.storage.meta_properties import MetaProperties, write_meta_properties
from kraftline.storage.names import METADATA_TOPIC
from kraftline.storage.snapshot_file import BOOTSTRAP_ID, SnapshotWriter, now

_DYNAMIC = "--standalone, --initial-controllers, or --no-initial-controllers"


class FormatRefused(KraftlineError):
    """Nothing was written, because what was asked makes no sense or a directory is in use."""


class DirectoryType(enum.Enum):
    """In Kafka's words, which `format` prints."""

    DATA = "data directory"
    STATIC_METADATA = "metadata directory"
    DYNAMIC_METADATA = "dynamic metadata directory"
    DYNAMIC_VOTER = "dynamic metadata voter directory"


class FormatRequest(msgspec.Struct, frozen=True, kw_only=True):
    """`voters` start a dynamic quorum; `dynamic_quorum` alone (--no-initial-controllers) makes
    a node that joins one. `version` and `features` are what was asked for: defaults fill in."""

    node_id: int
    cluster_id: str
    directories: tuple[str, ...]
    metadata_log_dir: str
    controller_listener: str = "CONTROLLER"
    version: MetadataVersion | None = None
    features: Mapping[str, int] = {}
    voters: tuple[InitialVoter, ...] = ()
    dynamic_quorum: bool = False
    scram: tuple[str, ...] = ()
    unstable_features: bool = False
    ignore_formatted: bool = False


class FormatPlan(msgspec.Struct, frozen=True, kw_only=True):
    """What will be written: directories in the order of their names, each with its id."""

    request: FormatRequest
    version: MetadataVersion
    features: Mapping[str, int]
    bootstrap: BootstrapMetadata
    directories: Mapping[str, tuple[DirectoryType, Uuid]]
    unreadable: tuple[str, ...] = ()


def plan_format(request: FormatRequest) -> FormatPlan:
    """Check everything and write nothing; FormatRefused (or the error of a part) says why not."""
    if request.node_id < 0:
        raise FormatRefused("You must specify a valid non-negative node ID.")
    if request.metadata_log_dir not in request.directories:
        raise FormatRefused(
            f"The specified metadata log directory, {request.metadata_log_dir} was not one of "
            f"the given directories: {', '.join(request.directories)}"
        )
    version = effective_version(request)
    features = effective_features(request, version)
    if request.scram and not version.scram_supported:
        first = next(each for each in VERSIONS if each.scram_supported)
        raise FormatRefused(f"SCRAM is only supported in {METADATA_VERSION} {first} or later.")
    scram = [parse_scram(argument) for argument in request.scram]
    found = read_directories(request.directories)
    check_agreement(found, cluster_id=request.cluster_id, node_id=request.node_id)
    _check_unformatted(request, found)
    return FormatPlan(
        request=request,
        version=version,
        features=features,
        bootstrap=bootstrap_of(version, features, scram),
        directories={path: _place(request, path) for path in found.unformatted},
        unreadable=tuple(sorted({*found.unreadable, *found.broken})),
    )


def format_directories(plan: FormatPlan, say: Callable[[str], None] = lambda line: None) -> None:
    """Write what was planned, one directory after the other."""
    for path, (kind, directory_id) in plan.directories.items():
        say(f"Formatting {kind.value} {path} with {METADATA_VERSION} {plan.version}.")
        try:
            os.makedirs(path, exist_ok=True)
        except OSError as error:
            raise unwritable(path, error) from error
        write_bootstrap_metadata(path, plan.bootstrap)
        if kind in (DirectoryType.DYNAMIC_METADATA, DirectoryType.DYNAMIC_VOTER):
            _write_voters(path, plan)
        write_meta_properties(
            os.path.join(path, meta_properties.NAME),
            MetaProperties(
                cluster_id=_as_kafka_reads(plan.request.cluster_id),
                node_id=plan.request.node_id,
                directory_id=directory_id,
            ),
        )
        sync_directory(os.path.dirname(os.path.abspath(path)))


def _as_kafka_reads(cluster_id: str) -> str:
    """Kafka writes meta.properties in UTF-8 and reads it as Latin-1: an id beyond ASCII becomes
    this one, on every node of the cluster."""
    return cluster_id.encode("utf-8", "replace").decode("latin-1")


def bootstrap_words(bootstrap: BootstrapMetadata) -> Iterator[str]:
    """The seed for people, an item a record. Keys of users stay out: Kafka prints them."""
    mechanisms = {mechanism.type: name for name, mechanism in MECHANISMS.items()}
    for record in bootstrap.records:
        match record:
            case FeatureLevelRecord(name=name, feature_level=level):
                shown = f" ({from_level(level)})" if name == METADATA_VERSION else ""
                yield f"{name}={level}{shown}"
            case UserScramCredentialRecord(name=user, mechanism=mechanism):
                yield f"{mechanisms[mechanism]} credential of {user}"
            case _:
                yield type(record).__name__


def effective_version(request: FormatRequest) -> MetadataVersion:
    asked = request.features.get(METADATA_VERSION)
    if asked is not None:
        if request.version is not None:
            raise FormatRefused(
                f"Use --release-version instead of --feature {METADATA_VERSION}=X to avoid "
                "ambiguity."
            )
        version = from_level(asked)
    elif request.version is not None:
        version = request.version
    else:
        version = LATEST_TESTING if request.unstable_features else LATEST_PRODUCTION
    check_stable(version, unstable=request.unstable_features)
    return version


def effective_features(request: FormatRequest, version: MetadataVersion) -> dict[str, int]:
    """All levels: what was asked for, and the defaults of the version for the others."""
    check_known(request.features)
    asked = {**request.features, METADATA_VERSION: version.level}
    levels = feature_defaults(version) | asked
    dynamic = bool(request.voters) or request.dynamic_quorum
    kraft = request.features.get(KRAFT_VERSION)
    if kraft == 0 and dynamic:
        raise FormatRefused(
            f"Cannot set {KRAFT_VERSION} to 0 if controller.quorum.voters is empty and one of the "
            f"flags {_DYNAMIC} is used. For dynamic controllers support, try removing the "
            f"--feature flag for {KRAFT_VERSION}."
        )
    if kraft and not dynamic:
        raise FormatRefused(
            f"Cannot set {KRAFT_VERSION} to {kraft} unless controller.quorum.voters is empty and "
            f"one of the flags {_DYNAMIC} is used. For dynamic controllers support, try using one "
            f"of {_DYNAMIC} and removing controller.quorum.voters."
        )
    if kraft is None:
        levels[KRAFT_VERSION] = FEATURES[KRAFT_VERSION].latest_production if dynamic else 0
    check_features(levels, unstable=request.unstable_features)
    return levels


def _check_unformatted(request: FormatRequest, found: ReadDirectories) -> None:
    if found.formatted and not request.ignore_formatted:
        first = next(iter(found.formatted))
        raise FormatRefused(
            f"Log directory {first} is already formatted. Use --ignore-formatted to ignore this "
            "directory and format the others."
        )
    unusable = {**found.unreadable, **found.broken}
    if unusable and not found.unformatted and not found.formatted:
        path, reason = next(iter(unusable.items()))
        raise FormatRefused(f"No available log directories to format. {path}: {reason}")


def _place(request: FormatRequest, path: str) -> tuple[DirectoryType, Uuid]:
    """The kind of a directory, and its id: of a voter, the one that the quorum knows it by."""
    if path != request.metadata_log_dir:
        return DirectoryType.DATA, random_uuid()
    if not request.voters:
        return DirectoryType.STATIC_METADATA, random_uuid()
    for voter in request.voters:
        if voter.node_id == request.node_id:
            return DirectoryType.DYNAMIC_VOTER, voter.directory_id
    return DirectoryType.DYNAMIC_METADATA, random_uuid()


def _write_voters(path: str, plan: FormatPlan) -> None:
    log = os.path.join(path, f"{METADATA_TOPIC}-0")
    os.makedirs(log, exist_ok=True)
    with SnapshotWriter(
        log,
        BOOTSTRAP_ID,
        last_contained_log_timestamp=now(),
        kraft_version=plan.features[KRAFT_VERSION],
        voters=voters_record(plan.request.voters, plan.request.controller_listener),
    ) as writer:
        writer.freeze()
    sync_directory(path)
