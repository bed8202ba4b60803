"""The oracle itself: what it encodes it decodes, and its nodes start, answer and die."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest

from tests.oracle.batches import BatchWriter
from tests.oracle.bridge import MessageBridge
from tests.oracle.driver import Driver
from tests.oracle.dump import Decoder, dump_text, parse_log
from tests.oracle.kafka import KraftCluster
from tests.oracle.lines import Refused
from tests.oracle.records import records_json


def test_bridge_decodes_what_it_encodes(message_bridge: MessageBridge) -> None:
    topic = {"name": "orders", "topicId": "AAAAAAAAAAAAAAAAAAAAAQ"}
    framed = message_bridge.encode_record("TopicRecord", 0, dict(topic))
    # Frame version 1, api key 2, record version 0.
    assert framed[:3] == b"\x01\x02\x00"
    assert message_bridge.decode_record(framed) == ("TopicRecord", 0, topic)
    assert message_bridge.decode("TopicRecord", 0, framed[3:]) == topic


def test_bridge_says_why_it_refuses(message_bridge: MessageBridge) -> None:
    with pytest.raises(Refused, match="name"):
        message_bridge.encode("TopicRecord", 0, {})


def test_writer_reads_what_it_writes(batch_writer: BatchWriter) -> None:
    data = batch_writer.write(
        {
            "magic": 2,
            "codec": "zstd",
            "baseOffset": 7,
            "records": [{"offset": 7, "timestamp": 1, "key": None, "value": "dg=="}],
        }
    )
    (record,) = batch_writer.read(data)
    assert (record["offset"], record["key"], record["value"]) == (7, None, "dg==")
    with pytest.raises(Refused, match="corrupt"):
        batch_writer.read(data[:-1] + bytes([data[-1] ^ 1]))


def test_live_node_writes_what_is_produced(kafka_4_3: KraftCluster, driver_4_3: Driver) -> None:
    driver_4_3.do("createTopic", name="live")
    assert driver_4_3.produce("live", [{"k": "a", "v": "1"}, {"k": "b", "v": None}]) == [0, 1]
    log = kafka_4_3.data(1) / "live-0" / "00000000000000000000.log"
    assert [base64.b64decode(str(each["key"])) for each in records_json(log)] == [b"a", b"b"]
    metadata = kafka_4_3.data(1) / "__cluster_metadata-0" / "00000000000000000000.log"
    text = dump_text([metadata], Decoder.METADATA)[metadata]
    assert '"name":"live"' in text
    assert parse_log(text)[0]["baseOffset"] == 0


@pytest.mark.soak
@pytest.mark.oracle
def test_killed_node_starts_again(tmp_path: Path) -> None:
    with KraftCluster(tmp_path) as kafka:
        kafka.start()
        kafka.kill(1)
        assert not (kafka.data(1) / ".kafka_cleanshutdown").exists()
        kafka.start()
        kafka.stop()
        assert (kafka.data(1) / ".kafka_cleanshutdown").exists()
