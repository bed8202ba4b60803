"""Disks under a node: full ones, failed ones, directories left by others, restarts."""

from __future__ import annotations

import errno
from collections.abc import Mapping
from pathlib import Path

import pytest

from kraftline.schema.api.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse
from kraftline.schema.api.describe_log_dirs import (
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
)
from kraftline.schema.api.error_codes import ErrorCode
from kraftline.schema.api.fetch import FetchResponse, PartitionData
from kraftline.schema.api.list_offsets import ListOffsetsPartitionResponse, ListOffsetsResponse
from kraftline.schema.api.produce import PartitionProduceResponse, ProduceResponse
from kraftline.schema.uuids import Uuid
from kraftline.storage.log.open_file import OpenFile
from tests.broker.running import Running, create_topic, running
from tests.broker.stories import batch, deletion, fetch, offsets, produce, wanted
from tests.broker.talking import Talk

Topic = tuple[str, Uuid]


def new_topic(node: Running, name: str, settings: Mapping[str, str] | None = None) -> Topic:
    return name, create_topic(node.address, name, settings)


def produced(node: Running, topic: Topic, data: bytes | None = None) -> PartitionProduceResponse:
    with Talk(node.address) as talk:
        request = produce(topic, [(0, data or batch())], acks=-1)
        [answer] = talk.ask_for(ProduceResponse, request, 9).responses
        return answer.partition_responses[0]


def fetched(node: Running, topic: Topic, offset: int = 0) -> PartitionData:
    with Talk(node.address) as talk:
        [answer] = talk.ask_for(FetchResponse, fetch(topic, wanted(0, offset)), 12).responses
        return answer.partitions[0]


def listed(node: Running, topic: Topic, when: int) -> ListOffsetsPartitionResponse:
    with Talk(node.address) as talk:
        answer = talk.ask_for(ListOffsetsResponse, offsets(topic[0], (0, when)), 7)
        return answer.topics[0].partitions[0]


def test_a_full_disk_refuses_and_goes_on_when_there_is_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with running(tmp_path) as node:
        topic = new_topic(node, "t")
        assert produced(node, topic).error_code == ErrorCode.NONE
        with monkeypatch.context() as patch:

            def full(self: OpenFile, data: object, position: int) -> None:
                raise OSError(errno.ENOSPC, "No space left on device")

            patch.setattr(OpenFile, "write", full)
            refused = produced(node, topic)
            assert (refused.error_code, refused.base_offset) == (ErrorCode.KAFKA_STORAGE_ERROR, -1)
            assert len(fetched(node, topic).records or b"") == len(batch())
        assert produced(node, topic).base_offset == 1
        assert len(fetched(node, topic).records or b"") == 2 * len(batch())


def test_a_failed_disk_takes_its_directory_offline_and_not_the_node(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    directories = [tmp_path / "one", tmp_path / "two"]
    settings = {"log.dirs": ",".join(map(str, directories))}
    with running(tmp_path, settings) as node:
        topics = [new_topic(node, f"t{n}") for n in range(4)]
        for topic in topics:
            produced(node, topic)
        in_two = {each.name.rpartition("-")[0] for each in directories[1].glob("t*-0")}
        assert 0 < len(in_two) < 4
        real = OpenFile.write

        def failing(self: OpenFile, data: memoryview, position: int) -> None:
            if self.path.startswith(str(directories[1])):
                raise OSError(errno.EIO, "Input/output error")
            real(self, data, position)

        monkeypatch.setattr(OpenFile, "write", failing)
        for _ in range(2):
            for topic in topics:
                failed = topic[0] in in_two
                expected = ErrorCode.KAFKA_STORAGE_ERROR if failed else ErrorCode.NONE
                assert produced(node, topic).error_code == expected
        for topic in topics:
            failed = topic[0] in in_two
            expected = ErrorCode.KAFKA_STORAGE_ERROR if failed else ErrorCode.NONE
            assert fetched(node, topic).error_code == expected
            assert listed(node, topic, -2).error_code == expected
        with Talk(node.address) as talk:
            told = talk.ask_for(DescribeLogDirsResponse, DescribeLogDirsRequest(topics=None), 4)
        assert {each.log_dir: each.error_code for each in told.results} == {
            str(directories[0]): ErrorCode.NONE,
            str(directories[1]): ErrorCode.KAFKA_STORAGE_ERROR,
        }


def test_bytes_that_went_bad_are_told_of_that_partition_alone(tmp_path: Path) -> None:
    with running(tmp_path) as node:
        bad, good = new_topic(node, "bad"), new_topic(node, "good")
        for topic in (bad, good):
            for _ in range(3):
                produced(node, topic)
        with open(tmp_path / "bad-0" / f"{0:020d}.log", "r+b") as file:
            file.seek(len(batch()))
            file.write(bytes(40))
        assert fetched(node, bad, 1).error_code == ErrorCode.CORRUPT_MESSAGE
        assert listed(node, bad, 5).error_code in (ErrorCode.NONE, ErrorCode.CORRUPT_MESSAGE)
        assert len(fetched(node, good, 1).records or b"") == 2 * len(batch())
        assert produced(node, bad).base_offset == 3


def test_a_restart_finds_everything_again(tmp_path: Path) -> None:
    with running(tmp_path) as node:
        topic = new_topic(node, "t", {"segment.bytes": "1048576", "retention.ms": "-1"})
        for _ in range(30):
            produced(node, topic, batch(b"x" * 100_000))
        with Talk(node.address) as talk:
            talk.ask(deletion((topic[0], 0, 7)), 2)
        before = fetched(node, topic, 7).records
        assert before
    assert (tmp_path / ".kafka_cleanshutdown").exists()
    with running(tmp_path) as node:
        assert listed(node, topic, -2).offset == 7
        assert listed(node, topic, -1).offset == 30
        after = fetched(node, topic, 7)
        assert (after.high_watermark, after.records) == (30, before)
        assert produced(node, topic).base_offset == 30
        log = node.node.broker.partitions.get("t", 0)
        assert log is not None
        assert log.log.config.segment_bytes == 1048576  # the topic's own config is in force


def test_directories_that_the_metadata_does_not_have_are_set_aside(tmp_path: Path) -> None:
    with running(tmp_path) as node:
        topic = new_topic(node, "kept")
        produced(node, topic)
    stray = tmp_path / "stranger-3"
    stray.mkdir()
    (stray / "partition.metadata").write_text("version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAew\n")
    (stray / f"{0:020d}.log").write_bytes(batch())
    of_nobody = tmp_path / "nobody-0"
    of_nobody.mkdir()
    elsewhere = tmp_path / "kept-9"
    elsewhere.mkdir()
    (elsewhere / "partition.metadata").write_bytes(
        (tmp_path / "kept-0" / "partition.metadata").read_bytes()
    )
    with running(tmp_path) as node:
        assert listed(node, topic, -1).offset == 1
        names = sorted(each.name for each in tmp_path.iterdir() if each.is_dir())
        kept = [each for each in names if each.endswith("-stray")]
        assert [each.partition(".")[0] for each in kept] == ["kept-9", "nobody-0", "stranger-3"]
        assert "kept-0" in names
        [aside] = tmp_path.glob("stranger-3.*-stray")
        assert (aside / f"{0:020d}.log").read_bytes() == batch()


def test_a_topic_made_again_under_its_name_starts_empty(tmp_path: Path) -> None:
    with running(tmp_path) as node:
        old = new_topic(node, "again")
        produced(node, old)
        with Talk(node.address) as talk:
            request = DeleteTopicsRequest(topic_names=("again",), timeout_ms=5000)
            [gone] = talk.ask_for(DeleteTopicsResponse, request, 5).responses
            assert gone.error_code == ErrorCode.NONE
        new = new_topic(node, "again")
        assert new != old
        assert listed(node, new, -1).offset == 0
        with Talk(node.address) as talk:
            answer = talk.ask_for(FetchResponse, fetch(old, wanted(0), version=13), 13)
            assert answer.responses[0].partitions[0].error_code == ErrorCode.UNKNOWN_TOPIC_ID
        produced(node, new)
        [removed] = tmp_path.glob("again-0.*-delete")
        assert removed.is_dir()
    with running(tmp_path) as node:
        assert listed(node, new, -1).offset == 1
