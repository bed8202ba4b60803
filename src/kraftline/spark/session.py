"""A Spark session of this machine, set up the way these jobs want it."""

from __future__ import annotations

import os
import re
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from kraftline.errors import KraftlineError
from kraftline.spark.java import java_home

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SETTINGS: Final = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "65536",
    "spark.sql.python.filterPushdown.enabled": "true",
    "spark.sql.adaptive.enabled": "true",
    # Jobs at the same time share the cores, whichever came first.
    "spark.scheduler.mode": "FAIR",
    # Between a JVM and its Pythons; over TCP a task's first bytes take tens of milliseconds.
    "spark.python.unix.domain.socket.enabled": "true",
    # Where in Python a column was made, for messages: two thirds of all calls to the JVM.
    "spark.python.sql.dataFrameDebugging.enabled": "false",
    "spark.log.level": "ERROR",
}

# For jobs that leave the work to Python: Java's quick compiler alone, and no code made for plans.
# All else would keep more than a core busy for seconds, and have nothing to speed up.
PYTHON_WORKS: Final = {
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xmn512m",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}

# Nobody from elsewhere has to reach a session of this machine alone.
_HERE: Final = {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
_IS_HERE: Final = re.compile(r"local\b|spark://(127\.|localhost\b)")
_ERROR: Final = " ERROR "
_LINES: Final = 20  # of what a JVM said that did not start


def local_session(
    name: str = "kraftline",
    *,
    master: str | None = None,
    cores: int | None = None,
    memory: str = "2g",
    **settings: str,
) -> SparkSession:
    """A session on this machine alone, or with executors of the cluster that `master` names, which
    find it under the address that Spark takes by itself (SPARK_LOCAL_IP, spark-defaults.conf);
    `settings` go over the usual ones (dots as in Spark)."""
    is_here = master is None or _IS_HERE.match(master) is not None
    if is_here:
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ["JAVA_HOME"] = str(java_home())
    from pyspark.sql import SparkSession

    count = cores or len(os.sched_getaffinity(0))
    chosen = {
        **SETTINGS,
        **(_HERE if is_here else {}),
        "spark.driver.memory": memory,
        "spark.sql.shuffle.partitions": str(2 * count),
        "spark.default.parallelism": str(2 * count),
        **settings,
    }
    builder = SparkSession.builder.master(master or f"local[{count}]").appName(name)
    for key, value in chosen.items():
        builder = builder.config(key, value)
    with _java_aside("" if master is None else f" on {master}"):
        return builder.getOrCreate()


@contextmanager
def _java_aside(where: str) -> Iterator[None]:
    """Let a JVM that starts in here write to a file instead of the terminal: it has much to say,
    and nothing that a person could use unless it fails."""
    with tempfile.TemporaryFile("w+b") as said:
        mine = os.dup(2)
        os.dup2(said.fileno(), 2)
        try:
            yield
        except Exception as error:
            said.seek(0)
            lines = said.read().decode(errors="replace").splitlines()
            raise KraftlineError(f"Spark did not start{where}: {_why(error, lines)}") from error
        finally:
            os.dup2(mine, 2)
            os.close(mine)


def _why(error: Exception, lines: list[str]) -> str:
    """What Java itself calls an error; where it calls nothing so, all that was said last."""
    errors = [line.partition(_ERROR)[2] for line in lines if _ERROR in line]
    return "; ".join(errors) or "\n".join([str(error), *lines[-_LINES:]])
