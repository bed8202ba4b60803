"""Images made from records, for decisions to stand on."""

from __future__ import annotations

from kraftline.metadata.image import EMPTY, MetadataDelta, MetadataImage, Provenance
from kraftline.schema import metadata as m
from kraftline.schema.metadata.register_broker_record import BrokerEndpoint, BrokerFeature
from kraftline.schema.types import Message
from tests.controller.broker_stories import directory, features, incarnation


def image_of(*records: Message, level: int = 30, elr: int = 1) -> MetadataImage:
    """A cluster of this metadata version, and what the records say of it."""
    delta = MetadataDelta(EMPTY)
    delta.replay(m.FeatureLevelRecord(name="metadata.version", feature_level=level))
    delta.replay(m.FeatureLevelRecord(name="eligible.leader.replicas.version", feature_level=elr))
    for record in records:
        delta.replay(record)
    return delta.apply(Provenance(len(records) + 1, 1, 0, True))


def broker(
    number: int, *, rack: str | None = None, fenced: bool = False, directories: int = 1
) -> m.RegisterBrokerRecord:
    """One that registered at the offset that is its id."""
    return m.RegisterBrokerRecord(
        broker_id=number,
        incarnation_id=incarnation(number, 0),
        broker_epoch=number,
        end_points=(BrokerEndpoint(name="PLAINTEXT", host="h", port=1, security_protocol=0),),
        features=tuple(
            BrokerFeature(
                name=each.name,
                min_supported_version=each.min_supported_version,
                max_supported_version=each.max_supported_version,
            )
            for each in features()
        ),
        rack=rack,
        fenced=fenced,
        log_dirs=tuple(directory(number, n) for n in range(directories)),
    )
