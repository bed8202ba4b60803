"""The cluster's state up to one offset of the metadata log, and the delta that leads to the next.

An image never changes. A delta starts from an image, takes records one by one, and `apply` gives
the next image, which shares with the one before all that the records did not touch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

import msgspec

from kraftline.metadata.faults import ReplayError, UnwritableMetadata
from kraftline.metadata.features import MetadataVersion
from kraftline.metadata.image.acls import AclsDelta, AclsImage
from kraftline.metadata.image.client_quotas import ClientQuotasDelta, ClientQuotasImage
from kraftline.metadata.image.cluster import ClusterDelta, ClusterImage
from kraftline.metadata.image.configs import ConfigFilter, ConfigsDelta, ConfigsImage
from kraftline.metadata.image.delegation_tokens import (
    DelegationTokensDelta,
    DelegationTokensImage,
)
from kraftline.metadata.image.features import FeaturesDelta, FeaturesImage
from kraftline.metadata.image.producer_ids import ProducerIdsDelta, ProducerIdsImage
from kraftline.metadata.image.scram import ScramDelta, ScramImage
from kraftline.metadata.image.topics import TopicsDelta, TopicsImage
from kraftline.metadata.write_options import Versioned, WriteOptions
from kraftline.schema.metadata.feature_level_record import FeatureLevelRecord
from kraftline.schema.metadata.remove_topic_record import RemoveTopicRecord
from kraftline.schema.types import Message


class Provenance(msgspec.Struct, frozen=True, gc=False):
    """Where in the log an image ends; `batch_aligned`: at a batch's end, so that a snapshot may be
    taken there."""

    last_offset: int = -1
    last_epoch: int = -1
    last_log_time_ms: int = -1
    batch_aligned: bool = False


class MetadataImage(msgspec.Struct, frozen=True, gc=False):
    provenance: Provenance = Provenance()
    features: FeaturesImage = FeaturesImage()
    cluster: ClusterImage = ClusterImage()
    topics: TopicsImage = TopicsImage()
    configs: ConfigsImage = ConfigsImage()
    client_quotas: ClientQuotasImage = ClientQuotasImage()
    producer_ids: ProducerIdsImage = ProducerIdsImage()
    acls: AclsImage = AclsImage()
    scram: ScramImage = ScramImage()
    delegation_tokens: DelegationTokensImage = DelegationTokensImage()

    @property
    def offset(self) -> int:
        return self.provenance.last_offset

    @property
    def is_empty(self) -> bool:
        return all(getattr(self, part).is_empty for part in PARTS)

    def write_options(self, on_loss: Callable[[str], None] | None = None) -> WriteOptions:
        """To write the image as it is, for its own metadata version."""
        version = self.features.metadata_version
        if version is None:
            raise UnwritableMetadata("unknown", ["the metadata version"])
        return WriteOptions(version, self.features.elr_enabled, on_loss)

    def losses(self, options: WriteOptions) -> list[str]:
        """What the version cannot say, in Kafka's words, each once."""
        lossy = (self.cluster, self.topics, self.scram, self.delegation_tokens)
        return list(dict.fromkeys(loss for part in lossy for loss in part.losses(options)))

    def write(self, options: WriteOptions) -> Iterator[Versioned]:
        """The image as the records of a snapshot, in Kafka's order and, where Kafka has none,
        sorted. UnwritableMetadata, before the first, if something would be lost unheard."""
        lost = self.losses(options)
        if lost and options.on_loss is None:
            raise UnwritableMetadata(options.version.name, lost)
        for loss in lost:
            assert options.on_loss is not None
            options.on_loss(loss)
        return self._records(options)

    def _records(self, options: WriteOptions) -> Iterator[Versioned]:
        for part in PARTS:
            yield from getattr(self, part).write(options)


# In the order in which they are written.
PARTS: Final = tuple(name for name in MetadataImage.__struct_fields__ if name != "provenance")
EMPTY: Final = MetadataImage()

# Who replays a record: a part of the delta and its method. None: nobody, it says nothing of state.
_ROUTES: Final[dict[str, tuple[str, str] | None]] = {
    "RegisterBrokerRecord": ("cluster", "replay"),
    "UnregisterBrokerRecord": ("cluster", "replay"),
    "TopicRecord": ("topics", "replay_topic"),
    "PartitionRecord": ("topics", "replay_partition"),
    "ConfigRecord": ("configs", "replay"),
    "PartitionChangeRecord": ("topics", "replay_change"),
    "FenceBrokerRecord": ("cluster", "replay"),
    "UnfenceBrokerRecord": ("cluster", "replay"),
    "DelegationTokenRecord": ("delegation_tokens", "replay_add"),
    "UserScramCredentialRecord": ("scram", "replay_add"),
    "ClientQuotaRecord": ("client_quotas", "replay"),
    "ProducerIdsRecord": ("producer_ids", "replay"),
    "BrokerRegistrationChangeRecord": ("cluster", "replay"),
    "AccessControlEntryRecord": ("acls", "replay_add"),
    "RemoveAccessControlEntryRecord": ("acls", "replay_remove"),
    "NoOpRecord": None,
    "ZkMigrationStateRecord": None,
    "RemoveUserScramCredentialRecord": ("scram", "replay_remove"),
    "RemoveDelegationTokenRecord": ("delegation_tokens", "replay_remove"),
    "RegisterControllerRecord": ("cluster", "replay"),
    "ClearElrRecord": ("topics", "replay_clear_elr"),
    "UnregisterControllerRecord": ("cluster", "replay"),
}
_DELTAS: Final[dict[str, Callable[[Any], Any]]] = {
    "features": FeaturesDelta,
    "cluster": ClusterDelta,
    "topics": TopicsDelta,
    "client_quotas": ClientQuotasDelta,
    "producer_ids": ProducerIdsDelta,
    "acls": AclsDelta,
    "scram": ScramDelta,
    "delegation_tokens": DelegationTokensDelta,
}


class MetadataDelta:
    """What some records change in an image. A part that no record touched is None.

    `known_config` tells which config keys this software knows; by default all are kept.
    """

    __slots__ = (
        "_known_config",
        "_routes",
        "acls",
        "client_quotas",
        "cluster",
        "configs",
        "delegation_tokens",
        "features",
        "image",
        "producer_ids",
        "scram",
        "topics",
    )

    def __init__(self, image: MetadataImage, known_config: ConfigFilter | None = None) -> None:
        self.image = image
        self._known_config = known_config
        # By record class, filled when the first of its kind comes.
        self._routes: dict[type[Message], Callable[[Any], object]] = {}
        self.features: FeaturesDelta | None = None
        self.cluster: ClusterDelta | None = None
        self.topics: TopicsDelta | None = None
        self.configs: ConfigsDelta | None = None
        self.client_quotas: ClientQuotasDelta | None = None
        self.producer_ids: ProducerIdsDelta | None = None
        self.acls: AclsDelta | None = None
        self.scram: ScramDelta | None = None
        self.delegation_tokens: DelegationTokensDelta | None = None

    @property
    def metadata_version_changed(self) -> MetadataVersion | None:
        """The version that a record of this delta set, if any."""
        return None if self.features is None else self.features.metadata_version

    def replay(self, record: Message) -> None:
        """Take one record; ReplayError, and no change, if it cannot be."""
        route = self._routes.get(type(record))
        if route is None:
            route = self._route(type(record))
        route(record)

    def finish_snapshot(self) -> None:
        """The records were all of a snapshot: what they did not name is removed."""
        for part in PARTS:
            self._part(part).finish_snapshot()

    def handle_metadata_version_change(self, version: MetadataVersion) -> None:
        """Let every part fit itself to a version; so far none has a need to."""
        for part in PARTS:
            if part != "features":
                self._part(part).handle_metadata_version_change(version)

    def apply(self, provenance: Provenance) -> MetadataImage:
        """The next image. Parts that did not change are the very same objects, and so is the
        image if its provenance is the same too."""
        image = self.image
        after = MetadataImage(
            provenance,
            image.features if self.features is None else self.features.apply(),
            image.cluster if self.cluster is None else self.cluster.apply(),
            image.topics if self.topics is None else self.topics.apply(),
            image.configs if self.configs is None else self.configs.apply(),
            image.client_quotas if self.client_quotas is None else self.client_quotas.apply(),
            image.producer_ids if self.producer_ids is None else self.producer_ids.apply(),
            image.acls if self.acls is None else self.acls.apply(),
            image.scram if self.scram is None else self.scram.apply(),
            image.delegation_tokens
            if self.delegation_tokens is None
            else self.delegation_tokens.apply(),
        )
        return image if _same(image, after) else after

    def _route(self, kind: type[Message]) -> Callable[[Any], object]:
        name = kind.__name__
        # A method of the delta itself is not kept: the delta would hold itself, and with it the
        # images before and after, until the collector comes by.
        if name == "RemoveTopicRecord":
            return self._remove_topic
        if name == "FeatureLevelRecord":
            return self._feature_level
        route: Callable[[Any], object]
        if name not in _ROUTES:
            route = _refuse
        else:
            where = _ROUTES[name]
            route = _ignore if where is None else getattr(self._part(where[0]), where[1])
        self._routes[kind] = route
        return route

    def _part(self, name: str) -> Any:
        part = getattr(self, name)
        if part is None:
            before = getattr(self.image, name)
            if name == "configs":
                part = ConfigsDelta(before, self._known_config)
            else:
                part = _DELTAS[name](before)
            setattr(self, name, part)
        return part

    def _remove_topic(self, record: RemoveTopicRecord) -> None:
        name = self._part("topics").replay_remove(record)
        self._part("configs").remove_topic(name)

    def _feature_level(self, record: FeatureLevelRecord) -> None:
        self._part("features").replay(record)
        version = self.metadata_version_changed
        if version is not None:
            self.handle_metadata_version_change(version)


def _same(one: MetadataImage, other: MetadataImage) -> bool:
    return (
        one.topics is other.topics
        and one.provenance == other.provenance
        and all(getattr(one, part) is getattr(other, part) for part in PARTS)
    )


def _ignore(record: Message) -> None:
    """Records that only move the offset."""


def _refuse(record: Message) -> None:
    # Transactions are the loader's: it hands on what is inside them, or does not.
    raise ReplayError(f"Unknown metadata record type {type(record).__name__}", record=record)
