"""As of any offset or time: Kafka's own image at batch boundaries, and what lies between them."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from kraftline.inspect.history import Unanswerable, open_history, parse_moment
from kraftline.inspect.history.moments import AtOffset, AtTime
from kraftline.metadata.image import MetadataImage
from kraftline.schema import metadata as m
from kraftline.schema.types import Message
from tests.fixtures.images.make import directories, file_of
from tests.inspect.metadata_logs import (
    OTHER,
    START,
    VERSION,
    batch,
    cluster,
    make_log,
    make_segment,
    partition,
    topic,
)
from tests.metadata.replaying import canonical, digest, written

by_directory = pytest.mark.parametrize(
    "directory", directories(), ids=lambda path: file_of(path).name.partition(".jsonl")[0]
)


def says(directory: Path) -> list[dict[str, Any]]:
    text = gzip.decompress(file_of(directory).read_bytes()).decode()
    return [json.loads(line) for line in text.splitlines()]


@by_directory
def test_as_of_every_batch_boundary_is_kafkas_image(directory: Path) -> None:
    history = open_history([str(directory)])
    (leg,) = history.legs
    lines = [line for line in says(directory) if "offset" in line]
    images = history.in_order(leg, [line["offset"] for line in lines])
    for image, line in zip(images, lines, strict=True):
        assert digest(written(image)) == line["digest"], f"{directory} at {line['offset']}"


@by_directory
def test_asking_one_by_one_gives_the_same(directory: Path) -> None:
    history = open_history([str(directory)])
    lines = [line for line in says(directory) if "offset" in line]
    for line in lines[:: max(1, len(lines) // 12)]:
        image = history.image(AtOffset(line["offset"]))
        assert digest(written(image)) == line["digest"]
        assert image.offset == line["offset"]


@by_directory
def test_last_image_is_kafkas_record_by_record(directory: Path) -> None:
    (end,) = (line for line in says(directory) if "end" in line)
    assert canonical(written(open_history([str(directory)]).image())) == canonical(end["image"])


def names(image: MetadataImage) -> set[str]:
    return set(image.topics.ids)


def test_inside_a_batch_records_up_to_the_offset_count(tmp_path: Path) -> None:
    log = make_log(tmp_path, [VERSION, topic(), partition(0), partition(1)])
    history = open_history([str(log)])
    counts = []
    for offset in range(4):
        found = history.image(AtOffset(offset)).topics.named("orders")
        counts.append(None if found is None else len(found.partitions))
    assert counts == [None, 0, 1, 2]


def test_a_transaction_takes_effect_at_its_end(tmp_path: Path) -> None:
    log = make_log(
        tmp_path,
        [VERSION],
        [m.BeginTransactionRecord(name="t"), topic()],
        [partition(0)],
        [m.EndTransactionRecord(), topic("later", OTHER)],
    )
    history = open_history([str(log)])
    assert [names(history.image(AtOffset(offset))) for offset in range(6)] == [
        set(),
        set(),
        set(),
        set(),
        {"orders"},
        {"orders", "later"},
    ]


def test_an_aborted_transaction_has_no_effect(tmp_path: Path) -> None:
    log = make_log(
        tmp_path,
        [VERSION],
        [m.BeginTransactionRecord(name="t"), topic()],
        [m.AbortTransactionRecord(reason="no")],
    )
    history = open_history([str(log)])
    assert names(history.image()) == set()
    assert not history.trouble


def test_an_open_transaction_at_the_end_has_no_effect(tmp_path: Path) -> None:
    log = make_log(tmp_path, [VERSION], [m.BeginTransactionRecord(name="t"), topic()])
    history = open_history([str(log)])
    assert names(history.image()) == set()
    assert history.image().offset == 2


def test_what_real_kafka_aborted_has_no_effect() -> None:
    (directory,) = (path for path in directories() if "aborted" in str(path))
    history = open_history([str(directory)])
    assert names(history.image()) == {"before", "after"}
    assert written(history.image()) == written(history.image(quick=True))


def test_times_never_go_back(tmp_path: Path) -> None:
    folder = tmp_path / "__cluster_metadata-0"
    batches: list[list[Message]] = [[VERSION], [topic()], [partition(0)], [partition(1)]]
    path = make_segment(folder, batches)
    data = b""
    for offset, (messages, time) in enumerate(zip(batches, (0, 5000, 2000, 6000), strict=True)):
        data += batch(messages, offset, time=START + time)
    path.write_bytes(data)
    history = open_history([str(folder)])
    at = {
        time: history.image(AtTime(START + time)).offset
        for time in (0, 2000, 4999, 5000, 5999, 6000)
    }
    assert at == {0: 0, 2000: 0, 4999: 0, 5000: 2, 5999: 2, 6000: 3}


def test_a_time_outside_is_refused_with_the_range(tmp_path: Path) -> None:
    history = open_history([str(make_log(tmp_path, *cluster()))])
    for text in ("2026-03-01T02:59:59Z", "2026-03-01T03:00:05Z", "9", "99999999999999999999"):
        with pytest.raises(Unanswerable) as error:
            history.image(parse_moment(text))
        assert "offsets 0 to 8 (2026-03-01 03:00:00.000Z to 2026-03-01 03:00:04.000Z)" in str(
            error.value
        )


@pytest.mark.parametrize("text", ["", "tomorrow", "-1", "1.5", "2026-13-01", "٣"])
def test_what_is_no_moment_is_said(text: str) -> None:
    with pytest.raises(ValueError, match="neither an offset"):
        parse_moment(text)


def test_moments() -> None:
    assert parse_moment("007") == AtOffset(7)
    assert parse_moment("2026-03-01T04:00:00+01:00") == AtTime(START)
    assert parse_moment("2026-03-01T03:00") == AtTime(START)
    assert parse_moment("2026-03-01T03:00:00.0019Z") == AtTime(START + 1)
    assert parse_moment("1969-12-31T23:59:59.9985Z") == AtTime(-2)
