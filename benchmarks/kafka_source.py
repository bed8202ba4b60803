"""Spark's own Kafka source and a real broker with a topic in it: the rival of `kafka_segments`."""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from tests.oracle.driver import Driver
from tests.oracle.jars import OracleUnavailable, cache_root
from tests.oracle.java import run
from tests.oracle.kafka import KraftCluster

TOPIC: Final = "events"
PARTITIONS: Final = 4
VALUE_BYTES: Final = 100

# The connector of Spark 4.3 is not in every mirror, nor is all of 4.2; the older ones that are
# read the same way. The first that Maven can get is taken.
_CONNECTORS: Final = (
    ("4.3.0", "4.3.0", "3.9.2"),
    ("4.2.0", "4.2.0", "3.9.2"),
    ("4.2.0", "4.0.0", "3.9.2"),
)


def connector() -> tuple[str, list[Path]]:
    """The version of Spark's Kafka source, and its jars, fetched at the first call."""
    for source, tokens, clients in _CONNECTORS:
        folder = cache_root() / f"spark-kafka-{source}-{tokens}"
        if not folder.is_dir() and not _fetch(folder, source, tokens, clients):
            continue
        return source, sorted(folder.glob("*.jar"))
    raise OracleUnavailable("Maven has no connector of Spark's for Kafka")


def _fetch(folder: Path, source: str, tokens: str, clients: str) -> bool:
    if shutil.which("mvn") is None:
        raise OracleUnavailable("no mvn")
    wanted = (
        f"org.apache.spark:spark-sql-kafka-0-10_2.13:{source}",
        f"org.apache.spark:spark-token-provider-kafka-0-10_2.13:{tokens}",
        f"org.apache.kafka:kafka-clients:{clients}",
        "org.apache.commons:commons-pool2:2.12.0",
    )
    # Everything else that they name comes with Spark.
    alone = (
        "<exclusions><exclusion><groupId>*</groupId><artifactId>*</artifactId>"
        "</exclusion></exclusions>"
    )
    blocks = "".join(
        "<dependency><groupId>{}</groupId><artifactId>{}</artifactId><version>{}</version>".format(
            *each.split(":")
        )
        + f"{alone}</dependency>"
        for each in wanted
    )
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix="fetch-") as scratch:
        pom, aside = Path(scratch) / "pom.xml", Path(scratch) / "jars"
        pom.write_text(
            '<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>'
            "<groupId>kraftline</groupId><artifactId>rival</artifactId><version>1</version>"
            f"<dependencies>{blocks}</dependencies></project>\n"
        )
        goal = ["dependency:copy-dependencies", f"-DoutputDirectory={aside}"]
        done = subprocess.run(["mvn", "-q", "-B", "-f", str(pom), *goal], capture_output=True)
        if done.returncode == 0:
            aside.rename(folder)
        return done.returncode == 0


@contextmanager
def broker_with(records: int) -> Iterator[KraftCluster]:
    """A running broker whose topic a real producer has filled, uncompressed."""
    with tempfile.TemporaryDirectory(prefix="kraftline-") as root:
        properties = {"log.index.size.max.bytes": str(10 * 1024 * 1024)}
        with KraftCluster(Path(root), properties=properties) as kafka:
            kafka.start()
            with Driver(kafka.bootstrap) as driver:
                driver.do("createTopic", name=TOPIC, partitions=PARTITIONS)
            _produce(kafka, records)
            yield kafka


def _produce(kafka: KraftCluster, records: int) -> None:
    arguments = ["--topic", TOPIC, "--num-records", str(records)]
    arguments += ["--record-size", str(VALUE_BYTES), "--throughput", "-1"]
    arguments += ["--producer-props", f"bootstrap.servers={kafka.bootstrap}", "linger.ms=5"]
    said = run("org.apache.kafka.tools.ProducerPerformance", arguments, timeout=900)
    if not re.search(rf"^{records} records sent", said, re.MULTILINE):
        raise RuntimeError(said[-2000:])
