"""Requests with some bytes changed: answered, or the connection is closed; nothing fails in us."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from random import Random

from kraftline.broker.registry import MODULES, answered
from kraftline.schema.api.registry import request_class
from tests.effort import rounds
from tests.node.running import OurNode
from tests.recorder import node_cases
from tests.recorder.any_request import any_request
from tests.recorder.frames import frame
from tests.recorder.live import Ended, Live

PRODUCE = 0  # left out: one with acks 0 has no answer to wait for
_HEAD = 8  # key, version and correlation id stay as they are


def test_changed_bytes_harm_nobody(tmp_path: Path) -> None:
    random = Random(6)
    ends: Counter[str] = Counter()
    with OurNode(tmp_path) as node, Live(node.bootstrap) as live:
        live.create_topics(**node_cases.TOPICS)
        for _ in range(rounds(1500)):
            key = random.choice([each for each in MODULES if each != PRODUCE])
            try:
                live.exchange(_mutated(random, key, live))
                ends["answered"] += 1
            except Ended:
                ends["closed"] += 1
            except TimeoutError:
                ends["a fetch that waits"] += 1
        assert min(ends["answered"], ends["closed"]) > 100, ends
        said = node.output()
    assert "ERROR" not in said
    assert "Traceback" not in said


def _mutated(random: Random, key: int, live: Live) -> bytes:
    versions = answered(key)
    assert versions is not None
    version = random.randint(versions.first, versions.last)
    request = any_request(request_class(key), version, random.randrange(1 << 30), live)
    data = bytearray(frame(request, key, version))
    for _ in range(random.choice((1, 1, 2, 5))):
        at = random.randrange(_HEAD, len(data))
        data[at] = random.choice((random.randrange(256), 0, 255, 127, 128, data[at] ^ 1))
    if random.random() < 0.2:
        del data[random.randrange(_HEAD, len(data)) :]
    return bytes(data)
