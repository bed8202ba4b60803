"""The next producer id that the controller will hand out."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from kraftline.metadata.features import MetadataVersion
from kraftline.metadata.write_options import Versioned, WriteOptions
from kraftline.schema.metadata.producer_ids_record import ProducerIdsRecord


class ProducerIdsImage(msgspec.Struct, frozen=True, gc=False):
    """-1 while none was ever handed out."""

    next_producer_id: int = -1

    @property
    def is_empty(self) -> bool:
        return self.next_producer_id == -1

    def write(self, options: WriteOptions) -> Iterator[Versioned]:
        if self.next_producer_id >= 0:
            next_id = self.next_producer_id
            yield ProducerIdsRecord(broker_id=-1, broker_epoch=-1, next_producer_id=next_id), 0


class ProducerIdsDelta:
    __slots__ = ("image", "next_producer_id")

    def __init__(self, image: ProducerIdsImage) -> None:
        self.image = image
        self.next_producer_id = image.next_producer_id

    def replay(self, record: ProducerIdsRecord) -> None:
        self.next_producer_id = record.next_producer_id

    def finish_snapshot(self) -> None:
        """A snapshot without the record leaves the id as it was: ids are never given back."""

    def handle_metadata_version_change(self, version: MetadataVersion) -> None:
        """Nothing depends on it."""

    def apply(self) -> ProducerIdsImage:
        if self.next_producer_id == self.image.next_producer_id:
            return self.image
        return ProducerIdsImage(self.next_producer_id)
