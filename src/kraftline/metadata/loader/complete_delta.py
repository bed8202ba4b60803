"""The whole image as one delta from nothing: what a publisher gets first."""

from __future__ import annotations

from collections.abc import Iterator

from kraftline.metadata.features import LATEST_PRODUCTION, METADATA_VERSION
from kraftline.metadata.image import EMPTY, MetadataDelta, MetadataImage
from kraftline.metadata.image.configs import ConfigFilter
from kraftline.metadata.write_options import WriteOptions
from kraftline.schema.metadata.feature_level_record import FeatureLevelRecord

_PIECE = 1024


def complete_delta(
    image: MetadataImage, known_config: ConfigFilter | None = None
) -> Iterator[MetadataDelta | None]:
    """None now and then, so that others may have their turn, and the delta at the end.

    The records are made for a version that can say everything, so that nothing is missing from
    the delta even if the image's own version could not write it. Kafka then has a fault, and its
    publishers nothing.
    """
    version = image.features.metadata_version
    able = LATEST_PRODUCTION
    if version is not None and version.level > able.level:
        able = version
    delta = MetadataDelta(EMPTY, known_config)
    for count, (record, _) in enumerate(image.write(WriteOptions(able, elr=True)), 1):
        if isinstance(record, FeatureLevelRecord) and record.name == METADATA_VERSION:
            if version is not None:
                delta.replay(FeatureLevelRecord(name=METADATA_VERSION, feature_level=version.level))
        else:
            delta.replay(record)
        if count % _PIECE == 0:
            yield None
    yield delta
