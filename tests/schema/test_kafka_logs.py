"""Records of real logs are read, written back, and printed as kafka-dump-log printed them."""

from __future__ import annotations

import gzip
import json
import re
from base64 import b64decode
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kraftline.schema.control.frame import (
    ControlType,
    control_json,
    decode_control_key,
    decode_control_value,
    encode_control_key,
    encode_control_value,
)
from kraftline.schema.coordinator import frame as coordinator
from kraftline.schema.coordinator.embedded import decode_assignment, decode_subscription
from kraftline.schema.coordinator.group import GroupMetadataValue
from kraftline.schema.jsontext import json_text
from kraftline.schema.metadata.frame import (
    decode_record,
    encode_record,
    record_from_json,
    record_json,
)

FIXTURES = Path(__file__).parent.parent / "fixtures"
LINE = re.compile(r"\| offset: (\d+) .*?headerKeys: \[\] ?(?:key: (.*?) )?(?:payload: )?(\S.*)?$")


def text(path: Path) -> str:
    data = path.read_bytes()
    return (gzip.decompress(data) if path.suffix == ".gz" else data).decode()


def logs(pattern: str) -> list[Path]:
    """What the JVM's reader saw in each log or snapshot whose path fits."""
    found = FIXTURES.glob("*/kafka-says/*/**/*.records.jsonl*")
    return sorted(path for path in found if re.search(pattern, str(path)))


def records(path: Path) -> Iterator[tuple[dict[str, Any], bytes, bytes | None]]:
    for line in text(path).splitlines():
        record = json.loads(line)
        key, value = record.get("key"), record.get("value")
        yield record, b64decode(key or ""), None if value is None else b64decode(value)


def printed(path: Path) -> dict[int, tuple[str, str]]:
    """What kafka-dump-log printed per offset: key and payload."""
    stem = path.name.split(".records.")[0]
    (dump,) = path.parent.glob(f"{stem}.dump.txt*")
    found = {}
    for line in text(dump).splitlines():
        if match := LINE.match(line):
            found[int(match[1])] = (match[2] or "", match[3] or "")
    return found


METADATA = logs(r"__cluster_metadata|\.checkpoint")


@pytest.mark.parametrize("path", METADATA, ids=lambda p: str(p.relative_to(FIXTURES)))
def test_metadata_records_of_real_logs(path: Path) -> None:
    said = printed(path)
    seen = 0
    for record, key, value in records(path):
        if value is None:
            continue
        payload = said[record["offset"]][1]
        if record["isControl"]:
            kind = ControlType(decode_control_key(key))
            message, version = decode_control_value(kind, value)
            assert encode_control_key(kind) == key
            assert encode_control_value(kind, message, version) == value
            # Before 4.x the tool only named those that it had no words for.
            form = json_text(control_json(kind, value))
            assert payload.endswith((form, f"controlType: {kind.name}({kind})"))
        else:
            message, version = decode_record(value)
            assert encode_record(message, version) == value
            assert json_text(record_json(value)) == payload
            assert record_from_json(record_json(value)) == (message, version)
        seen += 1
    assert seen


COORDINATORS = logs("/__(consumer_offsets|transaction_state|share_group_state)-")


@pytest.mark.parametrize("path", COORDINATORS, ids=lambda p: str(p.relative_to(FIXTURES)))
def test_coordinator_records_of_real_logs(path: Path) -> None:
    topic = coordinator.TOPICS[path.parent.name.rpartition("-")[0]]
    said = printed(path)
    # The dump tool of 2.8 printed these in another form.
    as_now = "4_3" in str(path)
    for record, key, value in records(path):
        if record["isControl"]:
            continue
        message = coordinator.decode_key(topic, key)
        kind = coordinator.key_type(key)
        assert message.SPEC.key == kind
        assert coordinator.encode_key(topic, message) == key
        if as_now:
            assert json_text(coordinator.key_json(topic, key)) == said[record["offset"]][0]
        if value is None:
            continue
        data, version = coordinator.decode_value(topic, kind, value)
        assert coordinator.encode_value(topic, data, version) == value
        if as_now:
            assert (
                json_text(coordinator.value_json(topic, kind, value)) == said[record["offset"]][1]
            )


def test_classic_groups_embed_what_consumers_said() -> None:
    topics: set[str] = set()
    for path in logs("/__consumer_offsets-"):
        for record, key, value in records(path):
            if record["isControl"] or value is None or coordinator.key_type(key) != 2:
                continue
            group, _ = coordinator.decode_value(coordinator.OFFSETS, 2, value)
            assert isinstance(group, GroupMetadataValue)
            for member in group.members:
                if group.protocol_type == "consumer":
                    subscription, _ = decode_subscription(member.subscription)
                    topics.update(subscription.topics)
                    if member.assignment:
                        assignment, _ = decode_assignment(member.assignment)
                        assert {t.topic for t in assignment.assigned_partitions} <= topics
    assert topics


def test_the_fixtures_hold_such_logs() -> None:
    assert len(METADATA) > 10
    assert {path.parent.name.rpartition("-")[0] for path in COORDINATORS} == set(coordinator.TOPICS)
