"""Features and their levels: `metadata.version` and the others, and what each level gates.

The facts are `feature_table`, which is generated from Kafka's own enums; here they become values
to ask. Level 7 (3.3-IV3) is the first that this release (as Kafka 4) reads, so whatever came
before it (NoOp records, BrokerRegistrationChange, controlled shutdown) is always there.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from kraftline.errors import KraftlineError
from kraftline.metadata import feature_table

METADATA_VERSION = "metadata.version"
KRAFT_VERSION = "kraft.version"
ELIGIBLE_LEADER_REPLICAS_VERSION = "eligible.leader.replicas.version"
GROUP_VERSION = "group.version"
SHARE_VERSION = "share.version"
STREAMS_VERSION = "streams.version"
TRANSACTION_VERSION = "transaction.version"


class UnsupportedFeature(KraftlineError):
    """A feature, or a level of one, that cannot be: unknown, unstable, or without its needs."""


class MetadataVersion(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One level of metadata.version, with all that it decides. Versions compare by `level`.

    The fields after `did_metadata_change` are Kafka's gates under Kafka's names; a record
    version of None means that the record is not written at all.
    """

    level: int
    name: str
    release: str
    # Whether records changed since the level before: going back across it would lose something.
    did_metadata_change: bool
    production: bool
    migration_supported: bool
    scram_supported: bool
    leader_epoch_bump_required_on_isr_shrink: bool
    metadata_transaction_supported: bool
    delegation_token_supported: bool
    controller_registration_supported: bool
    directory_assignment_supported: bool
    elr_supported: bool
    cordoned_log_dirs_supported: bool
    register_broker_record_version: int
    register_controller_record_version: int | None
    partition_record_version: int
    partition_change_record_version: int
    fetch_request_version: int
    list_offset_request_version: int

    def __str__(self) -> str:
        return self.name

    def __lt__(self, other: MetadataVersion) -> bool:
        return self.level < other.level

    def __le__(self, other: MetadataVersion) -> bool:
        return self.level <= other.level

    def __gt__(self, other: MetadataVersion) -> bool:
        return self.level > other.level

    def __ge__(self, other: MetadataVersion) -> bool:
        return self.level >= other.level


class KRaftVersion(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One level of kraft.version: 1 has voters in the log, and a quorum that can change."""

    level: int
    reconfig_supported: bool
    quorum_state_version: int
    kraft_version_record_version: int | None
    voters_record_version: int | None


class FeatureLevel(msgspec.Struct, frozen=True):
    """`default_from` is the metadata.version that a new cluster gets this level with; `needs`
    has the least levels of other features."""

    level: int
    default_from: int
    needs: Mapping[str, int]


class Feature(msgspec.Struct, frozen=True):
    name: str
    latest_production: int
    levels: tuple[FeatureLevel, ...]


def _gates(gates: feature_table.Gates, level: int) -> dict[str, bool | int | None]:
    return {name: [v for start, v in steps if start <= level][-1] for name, steps in gates.items()}


VERSIONS: tuple[MetadataVersion, ...] = tuple(
    msgspec.convert(
        {"level": level, "name": name, "release": release, "did_metadata_change": changed}
        | _gates(feature_table.GATES, level),
        MetadataVersion,
    )
    for level, (name, release, changed) in feature_table.VERSIONS.items()
)
_BY_LEVEL = {version.level: version for version in VERSIONS}
MINIMUM = _BY_LEVEL[feature_table.MINIMUM]
LATEST_PRODUCTION = _BY_LEVEL[feature_table.LATEST_PRODUCTION]
LATEST_TESTING = VERSIONS[-1]

FEATURES: Mapping[str, Feature] = {
    name: Feature(name, latest, tuple(FeatureLevel(n, *more) for n, more in levels.items()))
    for name, (latest, levels) in feature_table.FEATURES.items()
}
KRAFT_VERSIONS: tuple[KRaftVersion, ...] = tuple(
    msgspec.convert({"level": n.level} | _gates(feature_table.KRAFT_GATES, n.level), KRaftVersion)
    for n in FEATURES[KRAFT_VERSION].levels
)


def from_level(level: int) -> MetadataVersion:
    """The metadata version of a level, be it stable or not."""
    found = _BY_LEVEL.get(level)
    if found is not None:
        return found
    first, last = VERSIONS[0], VERSIONS[-1]
    if level > last.level:
        advice = (
            f"this one is of a Kafka newer than {feature_table.KAFKA}: use a newer Kraftline, or "
            f"lower the feature first (kafka-features.sh downgrade --feature "
            f"{METADATA_VERSION}={LATEST_PRODUCTION.level})"
        )
    else:
        advice = (
            f"only Kafka up to 3.9 reads it: raise the feature there first "
            f"(kafka-features.sh upgrade --release-version {first.release})"
        )
    raise UnsupportedFeature(
        f"No MetadataVersion with feature level {level}. Valid feature levels are from "
        f"{first.level} to {last.level}. These are {first} to {last}; {advice}."
    )


def from_release(text: str, *, unstable: bool = False) -> MetadataVersion:
    """The metadata version of "4.3", "4.3.1", "4.0-IV1"; a release stands for its newest stable
    one."""
    segments = text.rstrip(".").split(".")
    key = text if len(segments) <= 2 else ".".join(segments[:2])
    known = [version for version in VERSIONS if unstable or version.production]
    for version in reversed(known):
        if key == version.name or (key == version.release and version.production):
            return version
    names = ", ".join(version.name for version in known)
    advice = "a release such as 4.3 stands for its newest"
    if any(text in (version.name, version.release) for version in VERSIONS):
        advice = f"{text} is not yet stable: unstable.feature.versions.enable=true allows it"
    raise UnsupportedFeature(
        f"Unknown {METADATA_VERSION} '{text}'. Supported {METADATA_VERSION} are: {names}; {advice}"
    )


def feature_defaults(version: MetadataVersion) -> dict[str, int]:
    """The level of every other feature in a new cluster of this metadata version.

    For kraft.version that is what the software could; a quorum without voters in its log has 0.
    """
    return {
        name: max(n.level for n in feature.levels if n.default_from <= version.level)
        for name, feature in FEATURES.items()
    }


def supported_features(*, unstable: bool = False) -> dict[str, tuple[int, int]]:
    """Lowest and highest level of each feature, as a node announces them."""
    newest = LATEST_TESTING if unstable else LATEST_PRODUCTION
    ranges = {METADATA_VERSION: (MINIMUM.level, newest.level)}
    for name, feature in FEATURES.items():
        highest = feature.levels[-1].level if unstable else feature.latest_production
        if highest > 0:
            ranges[name] = (feature.levels[0].level, highest)
    return ranges


def check_features(levels: Mapping[str, int], *, unstable: bool = False) -> None:
    """Refuse a set of features that no cluster can have.

    `levels` holds metadata.version and any others; what is not in it counts as not set.
    """
    metadata = levels.get(METADATA_VERSION)
    if metadata is not None:
        check_stable(from_level(metadata), unstable=unstable)
    check_known(levels)
    for name in sorted(levels.keys() - {METADATA_VERSION}):
        level = feature_level(name, levels[name], unstable=unstable)
        if level.level >= 1 and metadata is None:
            raise UnsupportedFeature(
                f"{name} could not be set to {level.level} because it depends on "
                f"{METADATA_VERSION}={MINIMUM.level} ({MINIMUM})"
            )
        for need, least in sorted(level.needs.items()):
            if levels.get(need, -1) < least:
                raise UnsupportedFeature(
                    f"{name} could not be set to {level.level} because it depends on "
                    f"{need} level {least}"
                )


def check_known(names: Iterable[str]) -> None:
    for name in sorted(names):
        if name not in FEATURES and name != METADATA_VERSION:
            raise UnsupportedFeature(
                f"Unsupported feature: {name}. Supported features are: {', '.join(FEATURES)}"
            )


def feature_level(name: str, level: int, *, unstable: bool = False) -> FeatureLevel:
    """A level of a feature other than metadata.version."""
    feature = FEATURES[name]
    highest = feature.levels[-1].level if unstable else feature.latest_production
    for found in feature.levels:
        if found.level == level <= highest:
            return found
    raise UnsupportedFeature(
        f"No feature:{name} with feature level {level}; "
        f"levels {feature.levels[0].level} to {highest} are supported"
    )


def check_stable(version: MetadataVersion, *, unstable: bool = False) -> None:
    """Refuse a version that may still change, unless unstable.feature.versions.enable is set."""
    if not version.production and not unstable:
        raise UnsupportedFeature(
            f"{METADATA_VERSION} {version} is not yet stable. The newest that is: "
            f"{LATEST_PRODUCTION}; unstable.feature.versions.enable=true allows it for tests."
        )


def metadata_changed(one: MetadataVersion, other: MetadataVersion) -> bool:
    """Whether records differ between two versions: a downgrade across that loses something."""
    low, high = sorted((one.level, other.level))
    return any(version.did_metadata_change for version in VERSIONS if low < version.level <= high)
