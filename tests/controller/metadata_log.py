"""What a metadata log holds, with everything that differs from node to node by its nature taken
out: ids have names, epochs and incarnations are gone, and so are records that say nothing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, TypeAlias

from click.testing import CliRunner

from kraftline.cli.dump import command

Plain: TypeAlias = dict[str, Any]
# Random, or offsets of the log.
_OWN = {"brokerEpoch", "incarnationId", "voterDirectoryId", "port", "endPoints", "endpoints"}
# A controller registers some time after it started.
SILENT = frozenset({"NO_OP_RECORD", "REGISTER_CONTROLLER_RECORD"})


class LoggedBatch(list[tuple[str, Plain]]):
    """The records of one batch: type with version, and data."""


def read_lines(data: Path) -> list[Plain]:
    """Every record of the log in a log directory, as `kraftline dump` tells it."""
    folder = data / "__cluster_metadata-0"
    paths = [str(each) for each in sorted(folder.glob("*.log"))]
    result = CliRunner().invoke(command, [*paths, "--format", "jsonl"])
    assert result.exit_code == 0, result.output
    return [json.loads(line) for line in result.stdout.splitlines()]


def end_offset(data: Path) -> int:
    lines = read_lines(data)
    return lines[-1]["offset"] + 1 if lines else 0


def read_batches(data: Path, start: int = 0, silent: frozenset[str] = SILENT) -> list[LoggedBatch]:
    """The batches of metadata from an offset on, without records of the silent types."""
    lines = read_lines(data)
    names: dict[str, str] = {}
    directory_ids: set[str] = set()
    for line in lines:
        found = line["payload"]["data"]
        if line["payload"]["type"] == "TOPIC_RECORD":
            names[found["topicId"]] = f"id of {found['name']}"
        directory_ids.update(found.get("logDirs", ()))
    batches: dict[tuple[str, int], LoggedBatch] = {}
    for line in lines:
        payload = line["payload"]
        # Control records are the quorum's, and tell ports.
        if line["offset"] < start or line["isControl"] or payload["type"] in silent:
            continue
        where = (line.get("file", ""), line["position"])
        batch = batches.setdefault(where, LoggedBatch())
        kind = f"{payload['type']} {payload.get('version', '')}".strip()
        batch.append((kind, _plain(payload["data"], names, directory_ids)))
    return list(batches.values())


def _plain(value: Any, names: dict[str, str], directories: set[str]) -> Any:
    if isinstance(value, dict):
        return {
            key: _plain(each, names, directories) for key, each in value.items() if key not in _OWN
        }
    if isinstance(value, list):
        found = [_plain(each, names, directories) for each in value]
        # Kafka announces features in the order of a set that differs from run to run.
        is_features = found and isinstance(found[0], dict) and "minSupportedVersion" in found[0]
        return sorted(found, key=lambda each: each["name"]) if is_features else found
    if isinstance(value, str) and value in directories:
        return "a directory"
    return names.get(value, value) if isinstance(value, str) else value


def in_order(batch: LoggedBatch) -> LoggedBatch:
    """Records about several topics in one order: Kafka goes through sets of random ids."""
    return LoggedBatch(
        sorted(batch, key=lambda each: (each[0], str(each[1].get("topicId")), str(each[1])))
    )
