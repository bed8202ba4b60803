"""The images that Kafka's own delta and image classes make of metadata logs and snapshots."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import cast

from tests.oracle.lines import Json, LineProgram


class ImageOracle(LineProgram):
    """One JVM that replays logs; see `ImageJson.java` for what a line holds."""

    main = "ImageJson"

    def replay(
        self,
        logs: Sequence[Path] = (),
        *,
        snapshot: Path | None = None,
        batches: Sequence[Sequence[Json]] = (),
        each: bool = True,
        brokers: Sequence[int] = (),
        levels: Sequence[int] = (),
    ) -> list[dict[str, Json]]:
        """Lines at every batch boundary (or the last, without `each`), then one or two for each
        level that the last image is to be written for."""
        with tempfile.TemporaryDirectory() as scratch:
            out = Path(scratch) / "images.jsonl"
            self.ask(
                {
                    "out": str(out),
                    "logs": [str(log) for log in logs],
                    "snapshot": None if snapshot is None else str(snapshot),
                    "batches": cast("list[Json]", [list(batch) for batch in batches]),
                    "each": each,
                    "brokers": list(brokers),
                    "levels": list(levels),
                }
            )
            # Not splitlines: a name may hold a line separator that JSON leaves as it is.
            text = out.read_text(encoding="utf-8")
            return [json.loads(line) for line in text.split("\n") if line]
