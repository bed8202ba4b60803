"""Kafka's own cleaner, asked to clean a partition's directory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import cast

from tests.oracle.lines import Json, LineProgram


class KafkasCleaner(LineProgram):
    """`Cleaner` and `LogCleanerManager` of Kafka's jars, in one process."""

    main = "org.apache.kafka.storage.internals.log.LogCleaning"

    def clean(
        self,
        directory: Path,
        config: Mapping[str, str],
        now: int,
        *,
        checkpoint: int | None = None,
        memory: int = 1024 * 1024,
        buffer: int = 256 * 1024,
    ) -> dict[str, Json]:
        """Clean what a clean stop left; what Kafka counted, with `cleanedTo` its new checkpoint."""
        return self.ask(
            {
                "op": "clean",
                "logs": [_log(directory, config)],
                "now": now,
                "checkpoint": checkpoint,
                "memory": memory,
                "buffer": buffer,
            }
        )

    def open(
        self, directory: Path, config: Mapping[str, str], now: int, recovery_point: int
    ) -> int:
        """Open what a crash left, bring it in order and close it; the log's end."""
        log = _log(directory, config) | {"isClean": False, "recoveryPoint": recovery_point}
        return cast(int, self.ask({"op": "open", "logs": [log], "now": now})["end"])

    def choose(self, logs: Sequence[tuple[Path, Mapping[str, str]]], now: int) -> dict[str, Json]:
        """Which of the logs of a directory it would clean first, by the checkpoint there."""
        asked = [_log(directory, config) for directory, config in logs]
        return self.ask({"op": "choose", "logs": cast(Json, asked), "now": now})


def _log(directory: Path, config: Mapping[str, str]) -> dict[str, Json]:
    return {"directory": str(directory), "config": dict(config)}
