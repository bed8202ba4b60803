"""The fixtures as a team uses them: pytest in a process of its own, alone and with xdist."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path

TESTS = """
import os
import sys
import time
from confluent_kafka import Consumer, Producer, TopicPartition
import pytest


def test_a_record_comes_back(kafka_bootstrap, kafka_topic):
    producer = Producer({"bootstrap.servers": kafka_bootstrap})
    producer.produce(kafka_topic, b"hello")
    assert producer.flush(30) == 0
    consumer = Consumer(
        {"bootstrap.servers": kafka_bootstrap, "group.id": "g", "enable.auto.commit": False}
    )
    consumer.assign([TopicPartition(kafka_topic, 0, 0)])
    assert consumer.poll(30).value() == b"hello"
    consumer.close()


@pytest.mark.parametrize("case", ["a b", "é/x", "y" * 300])
def test_every_test_has_its_own_topic(kafka_topic, kafka_node, case):
    assert kafka_node.node.broker.partitions.get(kafka_topic, 0).log.end_offset == 0


def test_the_node_is_imported_as_it_is(kafka_node):
    import kraftline.node.node
    assert "rewrite" not in type(kraftline.node.node.__spec__.loader).__module__
    assert any("rewrite" in type(finder).__module__ for finder in sys.meta_path)


def test_which_node(kafka_node, record_property):
    print("NODE", kafka_node.bootstrap, os.getpid())
"""


def run(directory: Path, *arguments: str) -> str:
    (directory / "test_theirs.py").write_text(TESTS)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-W", "error", *arguments, "."],
        cwd=directory,
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_pytest_finds_the_plugin_by_itself() -> None:
    (found,) = entry_points(group="pytest11", name="kraftline")
    assert found.value == "kraftline.testing.plugin"


def test_a_session_has_one_node(tmp_path: Path) -> None:
    said = run(tmp_path, "-v", "-rP")
    assert "6 passed" in said
    assert len(set(re.findall(r"NODE (\S+)", said))) == 1


def test_processes_of_xdist_have_a_node_each(tmp_path: Path) -> None:
    said = run(tmp_path, "-n", "2", "--dist", "each", "-rP")
    assert "12 passed" in said
    nodes = re.findall(r"NODE (\S+) (\d+)", said)
    assert len(nodes) == 2
    assert len({address for address, _ in nodes}) == len({process for _, process in nodes}) == 2


def test_settings_are_a_fixture_to_override(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text(
        "import pytest\n"
        "@pytest.fixture(scope='session')\n"
        "def kafka_settings():\n"
        "    return {'num.partitions': 7}\n"
    )
    (tmp_path / "test_more.py").write_text(
        "def test_it(kafka_node):\n    assert kafka_node.node.config.whole('num.partitions') == 7\n"
    )
    assert "7 passed" in run(tmp_path)


def test_the_example_of_the_readme_is_a_test(tmp_path: Path) -> None:
    readme = (Path(__file__).parents[2] / "README.md").read_text()
    (example,) = (
        block
        for block in re.findall(r"```python\n(.*?)```", readme, re.S)
        if "kafka_topic" in block
    )
    (tmp_path / "test_readme.py").write_text(example)
    assert "7 passed" in run(tmp_path)


def test_a_session_that_asks_for_no_node_imports_none(tmp_path: Path) -> None:
    (tmp_path / "test_none.py").write_text(
        "import sys\ndef test_it():\n    assert 'kraftline.node' not in sys.modules\n"
    )
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "test_none.py"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stdout
