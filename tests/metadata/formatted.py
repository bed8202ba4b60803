"""What a formatted directory says, without times and random ids; and `format` run in process."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from click.testing import CliRunner

from kraftline.cli.format import command
from kraftline.errors import KraftlineError
from kraftline.records.control import read_control
from kraftline.schema.control.snapshot_header_record import SnapshotHeaderRecord
from kraftline.schema.control.voters_record import VotersRecord
from kraftline.schema.metadata.frame import record_json
from kraftline.storage.meta_properties import read_meta_properties
from kraftline.storage.segment import SegmentReader
from tests.fixtures.formatted.cases import DIRECTORY, OTHER_DIRECTORY

GIVEN = (DIRECTORY, OTHER_DIRECTORY)


@dataclass(frozen=True)
class OurOutcome:
    """`refused` is the message of our exception; None with a code of 2 is wrong use."""

    code: int
    printed: str
    refused: str | None


def run_format(args: list[str], root: Path) -> OurOutcome:
    """The verb, with the case's directory as DIR in all it says."""
    done = CliRunner().invoke(command, args)
    error = done.exception
    if error is not None and not isinstance(error, KraftlineError | SystemExit):
        raise error
    refused = str(error).replace(str(root), "DIR") if isinstance(error, KraftlineError) else None
    return OurOutcome(done.exit_code, done.stdout.replace(str(root), "DIR"), refused)


def describe(root: Path, *, salted: bool = True) -> dict[str, Any]:
    """Every file that `format` writes, record by record. Ids that were not given are RANDOM;
    with `salted` False, so are the keys of users."""
    found: dict[str, Any] = {}
    ids: dict[str, str] = {}
    for path in sorted(root.rglob("meta.properties")):
        meta = read_meta_properties(path)
        given = str(meta.directory_id)
        ids[given] = given if given in GIVEN else f"RANDOM {path.parent.name}"
        found[str(path.relative_to(root))] = {
            "version": meta.version,
            "cluster.id": meta.cluster_id,
            "node.id": meta.node_id,
            "directory.id": ids[given],
            "lines": [line.partition(b"=")[0] for line in path.read_bytes().splitlines()[2:]],
        }
    for path in sorted(root.rglob("*.checkpoint")):
        found[str(path.relative_to(root))] = checkpoint(path, ids, salted)
    return found


def checkpoint(path: Path, ids: dict[str, str], salted: bool) -> list[dict[str, Any]]:
    out = []
    with SegmentReader(path) as reader:
        for batch, position in reader.batches():
            header = {
                "position": position if salted else None,
                "base_offset": batch.base_offset,
                "epoch": batch.partition_leader_epoch,
                "attributes": batch.attributes,
                "producer": (batch.producer_id, batch.producer_epoch, batch.base_sequence),
                "one_time": batch.base_timestamp == batch.max_timestamp,
            }
            records: list[Any] = []
            for record in batch.records():
                if batch.is_control:
                    records.append(control(read_control(record).message, ids))
                else:
                    assert record.key is None
                    said = record_json(record.value or b"")
                    assert isinstance(said, dict)
                    if not salted and said["type"] == "USER_SCRAM_CREDENTIAL_RECORD":
                        said["data"] = "RANDOM"
                    records.append(said)
            out.append({**header, "records": records})
    return out


def control(message: object, ids: dict[str, str]) -> Any:
    match message:
        case SnapshotHeaderRecord(last_contained_log_timestamp=time):
            return ("header", message.version, time > 0)
        case VotersRecord(voters=voters):
            shown = [
                (v.voter_id, ids.get(str(v.voter_directory_id), str(v.voter_directory_id)),
                 v.endpoints, v.kraft_version_feature)
                for v in voters
            ]  # fmt: skip
            return ("voters", sorted(shown, key=lambda each: each[0]))
        case _:
            return message
