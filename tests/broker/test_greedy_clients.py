"""Clients that ask and never read, or send and never end: they wait for themselves alone."""

from __future__ import annotations

import contextlib
import resource
import time
from pathlib import Path

from kraftline.schema.api.fetch import FetchResponse
from kraftline.schema.api.produce import ProduceResponse
from tests.broker.running import Running, create_topic, running
from tests.broker.stories import batch, fetch, produce, wanted
from tests.broker.talking import Talk


def peak() -> int:
    """Bytes that this process, and the node in it, had at most."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def ask_without_reading(node: Running, topic: tuple[str, object], seconds: float) -> Talk:
    talk = Talk(node.address)
    talk.socket.settimeout(0.2)
    end = time.monotonic() + seconds
    with contextlib.suppress(TimeoutError):
        while time.monotonic() < end:
            talk.send(fetch(topic, wanted(0)), 12)  # type: ignore[arg-type]  # a topic
    return talk


def test_whoever_never_reads_costs_no_memory_and_no_time(tmp_path: Path) -> None:
    with running(tmp_path) as node:
        topic = ("t", create_topic(node.address, "t"))
        with Talk(node.address) as talk:
            for _ in range(8):
                data = batch(b"x" * 500_000)
                talk.ask(produce(topic, [(0, data)]), 9)
        before = peak()
        greedy = [ask_without_reading(node, topic, 2) for _ in range(8)]
        assert peak() - before < 64 * 1024 * 1024
        with Talk(node.address) as talk:
            start = time.monotonic()
            for _ in range(20):
                talk.ask_for(ProduceResponse, produce(topic, [(0, batch())]), 9)
            answer = talk.ask_for(FetchResponse, fetch(topic, wanted(0)), 12)
            assert len(answer.responses[0].partitions[0].records or b"") == 1_000_000
            assert time.monotonic() - start < 5
        # Each gets what it asked for, once it reads.
        greedy[0].socket.settimeout(30)
        for _ in range(3):
            assert len(greedy[0].frame()) > 1_000_000
        for each in greedy:
            each.socket.close()
