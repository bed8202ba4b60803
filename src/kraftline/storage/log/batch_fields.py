"""What a log needs to know of a batch that it takes in."""

from __future__ import annotations

from enum import Enum
from typing import Final

import msgspec

from kraftline.records.record import advance_sequence

TRANSACTIONAL: Final = 0x10
CONTROL: Final = 0x20


class Origin(Enum):
    """Who appends. Only clients' batches are held to the rules for clients."""

    CLIENT = "client"
    COORDINATOR = "coordinator"
    REPLICATION = "replication"


class BatchFields(msgspec.Struct, gc=False):
    """A batch ready to be appended: `data` is all of it, header and records.

    `count` is how many offsets it takes, `log_append_time` -1 where times are the producer's.
    """

    data: memoryview
    attributes: int
    count: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    log_append_time: int = -1
    base_offset: int = -1

    @property
    def last_offset(self) -> int:
        return self.base_offset + self.count - 1

    @property
    def last_sequence(self) -> int:
        if self.base_sequence < 0:
            return self.base_sequence
        return advance_sequence(self.base_sequence, self.count - 1)
