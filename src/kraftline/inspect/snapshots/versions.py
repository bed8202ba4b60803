"""A state for another release: which of it an older metadata version cannot say."""

from __future__ import annotations

import msgspec

from kraftline.inspect.snapshots.refusal import Refused
from kraftline.inspect.snapshots.source import State
from kraftline.metadata.features import (
    FEATURES,
    KRAFT_VERSION,
    METADATA_VERSION,
    MetadataVersion,
)
from kraftline.metadata.image import MetadataDelta, MetadataImage
from kraftline.metadata.image.features import FeaturesImage
from kraftline.metadata.write_options import WriteOptions
from kraftline.schema.metadata.partition_change_record import PartitionChangeRecord


def losses(state: State) -> list[str]:
    """What the state's own metadata version cannot say: something is left of a newer one."""
    return state.image.losses(state.image.write_options())


def for_release(state: State, version: MetadataVersion) -> tuple[State, list[str]]:
    """The state as that version can have it, and what is lost on the way, one a line.

    The first are Kafka's own words; features that the version is too old for go as well, since
    no node of that release would start with them.
    """
    image = state.image
    now = image.features.metadata_version
    if now is not None and version > now:
        raise Refused(
            f"the cluster is at metadata.version {now}, which is older than {version}: only a "
            "running controller can raise it",
            hint=f"kafka-features.sh upgrade --release-version {version.release}",
        )
    least = FEATURES[KRAFT_VERSION].levels
    needed = max(n.default_from for n in least if n.level <= state.kraft_version)
    if version.level < needed:
        raise Refused(
            f"the quorum keeps its voters in the log (kraft.version {state.kraft_version}), which "
            f"no release with {METADATA_VERSION} {version} can, and there is no way back"
        )
    options = WriteOptions(version, image.features.elr_enabled)
    lost = image.losses(options)
    features, more = _features(image, version)
    after = msgspec.structs.replace(image, features=features)
    if not version.elr_supported:
        after = _in_sync_again(after)
    return msgspec.structs.replace(state, image=after), [*lost, *more]


def _in_sync_again(image: MetadataImage) -> MetadataImage:
    """Where nobody is in sync, those are who could be elected: they have everything committed, and
    without eligible leaders an empty ISR would never have a leader again."""
    delta = MetadataDelta(image)
    for topic in image.topics.by_id.values():
        for number, partition in topic.items():
            if partition.elr and not partition.isr:
                delta.replay(
                    PartitionChangeRecord(
                        partition_id=number,
                        topic_id=topic.id,
                        isr=partition.elr,
                        eligible_leader_replicas=(),
                        last_known_elr=(),
                    )
                )
    return delta.apply(image.provenance)


def _features(image: MetadataImage, version: MetadataVersion) -> tuple[FeaturesImage, list[str]]:
    levels, lost = image.features.levels, []
    for name, level in sorted(levels.items()):
        feature = FEATURES.get(name)
        if feature is None:
            continue
        # Where a level names no need, the release that first turned it on is the first with it.
        fitting = max(
            n.level
            for n in feature.levels
            if n.needs.get(METADATA_VERSION, n.default_from) <= version.level
        )
        if fitting < level:
            levels = levels.set(name, fitting) if fitting else levels.delete(name)
            lost.append(f"{name} {level}, which goes down to {fitting}")
    return FeaturesImage(version, levels), lost
