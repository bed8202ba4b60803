"""What every test can use."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, settings

from tests.effort import rounds

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytest_plugins = ["tests.oracle.plugin"]

settings.register_profile(
    "kraftline",
    max_examples=rounds(25),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
settings.load_profile("kraftline")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Where processes share the tests, one has all of Spark's, whose session takes long to start,
    and begins with them; others stay together by file. First, since xdist reads the marks here."""
    spark = {item for item in items if "spark" in getattr(item, "fixturenames", ())}
    for item in items:
        group = "spark" if item in spark else item.nodeid.partition("::")[0]
        item.add_marker(pytest.mark.xdist_group(group))
    items.sort(key=lambda item: item not in spark)


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """One session for all tests of a process. Java's quick compiler alone: what tests do is over
    before the other one pays."""
    from kraftline.spark.session import local_session

    options: dict[str, Any] = {
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
    }
    session = local_session("kraftline tests", **options)
    yield session
    session.stop()
