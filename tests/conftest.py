"""What every test can use."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, settings

from tests.effort import SOAK, rounds

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from xdist.remote import Producer
    from xdist.scheduler import LoadScopeScheduling

pytest_plugins = ["tests.oracle.plugin"]

settings.register_profile(
    "kraftline",
    max_examples=rounds(25),
    derandomize=not SOAK,  # one commit, one outcome; a soak looks further
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
settings.load_profile("kraftline")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> LoadScopeScheduling:
    """Where processes share the tests, one has all of Spark's, whose session takes long to start;
    others stay together by file."""
    from xdist.scheduler import LoadScopeScheduling

    class Scheduling(LoadScopeScheduling):  # type: ignore[misc]  # it has no types
        def _split_scope(self, nodeid: str) -> str:
            return "spark" if _needs_spark(nodeid) else nodeid.partition("::")[0]

    return Scheduling(config, log)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Spark's tests come first: they are the longest of what one process has to itself. What is
    marked for a soak waits for one."""
    if not SOAK:
        later = [item for item in items if item.get_closest_marker("soak") is not None]
        config.hook.pytest_deselected(items=later)
        items[:] = [item for item in items if item.get_closest_marker("soak") is None]
    items.sort(key=lambda item: not _needs_spark(item.nodeid))


def _needs_spark(nodeid: str) -> bool:
    return nodeid.startswith("tests/spark/") or "::test_spark" in nodeid


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """One session for all tests of a process. Java's quick compiler alone: what tests do is over
    before the other one pays."""
    from kraftline.spark.session import PYTHON_WORKS, local_session

    java = "spark.driver.extraJavaOptions"
    options: dict[str, Any] = {java: PYTHON_WORKS[java]}
    session = local_session("kraftline tests", **options)
    yield session
    session.stop()
