"""Kafka's own batch builder and reader, for bytes in memory."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from tests.oracle.lines import Json, LineProgram


class BatchWriter(LineProgram):
    """One JVM that writes and reads record batches of every magic and codec.

    A batch is a dict with `magic`, `codec`, `baseOffset`, `records` (each `offset`, `timestamp`,
    base64 `key` and `value` or null, `headers`), and optionally `timestampType`,
    `logAppendTime`, `producerId`, `producerEpoch`, `baseSequence`, `isTransactional`,
    `isControl`, `partitionLeaderEpoch`, `deleteHorizonMs`, `lastOffset`.
    """

    main = "BatchWriter"

    def write(self, batch: Mapping[str, Json]) -> bytes:
        """The bytes of one batch; an `op` of "empty" in it makes a header without records."""
        answer = self.ask({"op": "write", **batch})
        return bytes.fromhex(cast(str, answer["hex"]))

    def read(self, data: bytes) -> list[dict[str, Json]]:
        """Every record of these batches with its batch's fields; refuses bad checksums."""
        answer = self.ask({"op": "read", "hex": data.hex()})
        if answer["remaining"]:
            raise ValueError(f"{answer['remaining']} bytes left after the last whole batch")
        return cast("list[dict[str, Json]]", answer["records"])
