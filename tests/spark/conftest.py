"""One Spark session for all tests of a process: starting one takes seconds."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from kraftline.spark.session import local_session
from tests.effort import SOAK

# A cluster of processes, fifty clusters, and every offset of many logs: minutes, so for a soak.
collect_ignore = [] if SOAK else ["history", "test_cluster.py", "test_fleet.py"]


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    session = local_session("kraftline tests")
    yield session
    session.stop()
