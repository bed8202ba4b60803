"""kcat (librdkafka 2.0, with older versions of every API) against our node and real Kafka."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable

import pytest

from tests.clients.adapters import Confluent

pytestmark = pytest.mark.skipif(
    shutil.which("kcat") is None, reason="kcat is not installed: apt-get install kcat"
)
NewName = Callable[[], str]


def kcat(bootstrap: str, *arguments: str, stdin: str = "") -> str:
    done = subprocess.run(
        ["kcat", "-b", bootstrap, *arguments],
        input=stdin,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    return done.stdout


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_lines_come_back(bootstrap: str, new_name: NewName, codec: str) -> None:
    name = new_name()
    Confluent(bootstrap).create_topic(name, 2)
    lines = [f"key-{number}:value {number}" for number in range(500)]
    where = ("-t", name, "-p", "1", "-K", ":")
    kcat(bootstrap, "-P", *where, "-z", codec, stdin="\n".join(lines) + "\n")
    assert kcat(bootstrap, "-C", *where, "-o", "beginning", "-e", "-q").splitlines() == lines
    assert kcat(bootstrap, "-C", *where, "-o", "-3", "-e", "-q").splitlines() == lines[-3:]


def test_the_cluster_is_listed(bootstrap: str, new_name: NewName) -> None:
    name = new_name()
    Confluent(bootstrap).create_topic(name, 3)
    said = kcat(bootstrap, "-L", "-t", name)
    assert f"broker 1 at {bootstrap}" in said
    assert f'topic "{name}" with 3 partitions' in said


def test_offsets_are_asked_by_time(bootstrap: str, new_name: NewName) -> None:
    name = new_name()
    Confluent(bootstrap).create_topic(name)
    kcat(bootstrap, "-P", "-t", name, stdin="a\nb\n")
    assert kcat(bootstrap, "-Q", "-t", f"{name}:0:0").strip() == f"{name} [0] offset 0"
