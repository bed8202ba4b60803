"""Pytest fixtures that need real Kafka, and the marker `oracle` for tests that do.

Where Java or Maven is missing, these tests are skipped and the summary says how many and why.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.oracle.batches import BatchWriter
from tests.oracle.bridge import MessageBridge
from tests.oracle.driver import Driver
from tests.oracle.jars import available
from tests.oracle.kafka import KraftCluster

_needing = functools.cache(available)
_PREFIX = "oracle: "
_FIXTURES = frozenset({"message_bridge", "batch_writer", "kafka_4_3", "driver_4_3"})


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "oracle: needs real Kafka (java, javac and mvn)")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark every test that uses one of our fixtures; skip all marked ones when they cannot run."""
    wanted = []
    for item in items:
        if _FIXTURES.intersection(getattr(item, "fixturenames", ())):
            item.add_marker(pytest.mark.oracle)
        if item.get_closest_marker("oracle") is not None:
            wanted.append(item)
    # Only now, since the first call may fetch the jars.
    reason = _needing() if wanted else None
    if reason is not None:
        for item in wanted:
            item.add_marker(pytest.mark.skip(reason=_PREFIX + reason))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    # From the reports, which also arrive when the tests ran in other processes.
    said = [str(report.longrepr) for report in terminalreporter.stats.get("skipped", [])]
    reasons = [each.partition(_PREFIX)[2].rstrip("')") for each in said if _PREFIX in each]
    if reasons:
        line = f"{len(reasons)} oracle tests skipped: {reasons[0]}"
        terminalreporter.write_sep("=", line, red=True, bold=True)


@pytest.fixture(scope="session")
def message_bridge() -> Iterator[MessageBridge]:
    """Kafka's generated message classes."""
    with MessageBridge() as bridge:
        yield bridge


@pytest.fixture(scope="session")
def batch_writer() -> Iterator[BatchWriter]:
    """Kafka's own batch builder and reader."""
    with BatchWriter() as writer:
        yield writer


@pytest.fixture(scope="session")
def kafka_4_3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KraftCluster]:
    """One running 4.3 node, broker and controller, shared by all tests."""
    root: Path = tmp_path_factory.mktemp("kafka-4-3")
    with KraftCluster(root, dynamic=True) as kafka:
        kafka.start()
        yield kafka


@pytest.fixture(scope="session")
def driver_4_3(kafka_4_3: KraftCluster) -> Iterator[Driver]:
    """A client of the shared 4.3 node."""
    with Driver(kafka_4_3.bootstrap) as driver:
        yield driver
