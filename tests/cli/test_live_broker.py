"""The tools on the directory of a real broker while it is writing: nothing is locked or missed."""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys

from tests.oracle.driver import Driver
from tests.oracle.kafka import KraftCluster


def kraftline(*args: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "kraftline", *map(str, args)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_a_live_directory_is_dumped_explained_and_sound(
    kafka_4_3: KraftCluster, driver_4_3: Driver
) -> None:
    driver_4_3.do("createTopic", name="watched")
    driver_4_3.produce("watched", [{"k": f"k{i}", "v": f"v{i}"} for i in range(50)])
    node = kafka_4_3.data(1)
    dumped = kraftline("dump", node / "watched-0", "--format", "jsonl")
    assert (dumped.returncode, dumped.stderr) == (0, "")
    rows = [json.loads(line) for line in dumped.stdout.splitlines()]
    assert [base64.b64decode(row["value"]) for row in rows] == [b"v%d" % i for i in range(50)]
    topics = kraftline("dump", node, "--type", "TOPIC", "--topic", "watched", "--format", "jsonl")
    assert json.loads(topics.stdout.splitlines()[0])["payload"]["data"]["name"] == "watched"
    found = json.loads(kraftline("info", node, "--format", "json").stdout)
    assert "watched" in json.dumps(found)
    # Other tests share this broker, and have it take batches that verify rightly remarks on.
    verified = kraftline("verify", node / "watched-0", node / "__cluster_metadata-0")
    assert verified.returncode == 0, verified.stdout


def test_follow_sees_what_a_real_producer_sends(
    kafka_4_3: KraftCluster, driver_4_3: Driver
) -> None:
    driver_4_3.do("createTopic", name="followed")
    driver_4_3.produce("followed", [{"k": "a", "v": "first"}])
    folder = kafka_4_3.data(1) / "followed-0"
    process = subprocess.Popen(
        [sys.executable, "-m", "kraftline", "dump", "--follow", "--format", "jsonl", str(folder)],
        stdout=subprocess.PIPE,
        env={name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"},
    )
    assert process.stdout is not None
    try:
        assert json.loads(process.stdout.readline())["offset"] == 0
        for offset in range(1, 6):
            driver_4_3.produce("followed", [{"k": "a", "v": str(offset)}])
            row = json.loads(process.stdout.readline())
            assert (row["offset"], base64.b64decode(row["value"])) == (offset, b"%d" % offset)
    finally:
        process.terminate()
        process.wait(10)
        process.stdout.close()
