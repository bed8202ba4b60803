"""Directories that other tools wrote, or that lost parts: real Kafka starts on each; so do we."""

from __future__ import annotations

import re
import shutil
import struct
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.clients.adapters import Confluent, Sent
from tests.node.running import OurNode, RealKafka

COUNT = 50


@pytest.fixture(
    scope="module",
    params=["kraftline", pytest.param("kafka", marks=[pytest.mark.oracle, pytest.mark.soak])],
)
def left(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[type[OurNode] | type[RealKafka], Path]:
    """What a node left that had a topic with some records, and was stopped."""
    kind = OurNode if request.param == "kraftline" else RealKafka
    with kind(tmp_path_factory.mktemp(f"left-{request.param}")) as node:
        client = Confluent(node.bootstrap)
        client.create_topic("t", 2)
        client.produce("t", [Sent(b"k", b"v%d" % n) for n in range(COUNT)], idempotent=True)
    return kind, node.data


@pytest.fixture
def stopped(
    left: tuple[type[OurNode] | type[RealKafka], Path], tmp_path: Path
) -> Iterator[OurNode | RealKafka]:
    """A node with a copy of that."""
    kind, data = left
    node = kind(tmp_path)
    shutil.copytree(data, node.data)
    yield node
    node.kill()


def serves(node: OurNode | RealKafka) -> None:
    node.start()
    client = Confluent(node.bootstrap)
    assert client.watermarks("t") == (0, COUNT)
    assert len(client.consume("t", None, COUNT)) == COUNT
    assert client.produce("t", [Sent(None, b"more")]) == [COUNT]
    node.stop()


def _padded(text: str) -> str:
    return re.sub(r"\b([\w-]{22})$", r"\1==", text, flags=re.M)


def _standard_alphabet(text: str) -> str:
    def swap(found: re.Match[str]) -> str:
        return found[1] + found[2].replace("-", "+").replace("_", "/")

    return re.sub(r"((?:topic_id: |directory\.id=))(\S+)", swap, text)


@pytest.mark.parametrize("spelling", [_padded, _standard_alphabet])
def test_ids_may_be_spelt_in_other_ways(
    stopped: OurNode | RealKafka, spelling: Callable[[str], str]
) -> None:
    for path in stopped.data.glob("t-*/partition.metadata"):
        text = spelling(path.read_text())
        if not isinstance(stopped, OurNode) and re.search(r"[+/]", text):
            pytest.skip("real Kafka 4.3.1 does not start with base64's other alphabet")
        path.write_text(text)
    serves(stopped)


def test_files_may_lack_their_last_newline(stopped: OurNode | RealKafka) -> None:
    small = [
        path for path in stopped.data.rglob("*") if path.is_file() and path.stat().st_size < 999
    ]
    for path in small:
        if path.suffix not in (".log", ".index", ".timeindex", ".snapshot", ".checkpoint"):
            path.write_bytes(path.read_bytes().removesuffix(b"\n"))
    serves(stopped)


def test_indexes_checkpoints_and_bootstrap_may_be_missing(stopped: OurNode | RealKafka) -> None:
    names = ("quorum-state", "leader-epoch-checkpoint", "bootstrap.checkpoint")
    for path in stopped.data.rglob("*"):
        is_made_again = path.suffix in (".index", ".timeindex", ".snapshot")
        if is_made_again or path.name in names or path.name.endswith("offset-checkpoint"):
            path.unlink()
    serves(stopped)


def test_the_metadata_log_may_begin_after_offset_0(stopped: OurNode | RealKafka) -> None:
    log = stopped.data / "__cluster_metadata-0" / f"{0:020}.log"
    data = log.read_bytes()
    offset, length = struct.unpack_from(">qi", data)
    assert offset == 0
    log.write_bytes(data[12 + length :])
    for index in log.parent.glob("*index"):
        index.unlink()
    serves(stopped)


def test_sequences_of_a_producer_may_repeat(stopped: OurNode | RealKafka) -> None:
    """A batch of the log once more, at the offsets that follow: nobody looks at sequences then."""
    log = stopped.data / "t-0" / f"{0:020}.log"
    data = log.read_bytes()
    log.write_bytes(data + (COUNT).to_bytes(8, "big") + data[8:])
    for path in [*log.parent.glob("*.snapshot"), *log.parent.glob("*index")]:
        path.unlink()
    (stopped.data / ".kafka_cleanshutdown").unlink()
    stopped.start()
    client = Confluent(stopped.bootstrap)
    assert client.watermarks("t") == (0, 2 * COUNT)
    stopped.stop()
