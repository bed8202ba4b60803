"""A real Spark cluster on this machine: a master and workers, each a process of its own."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pyspark

from kraftline.spark.java import java_home

_CLASS = Path(pyspark.__file__).parent / "bin" / "spark-class"


@contextmanager
def standalone(folder: Path, workers: int = 2) -> Iterator[str]:
    """The master's address. Workers have folders, homes and temporary directories of their own."""
    with ExitStack() as stack:
        master = stack.enter_context(
            _process(folder / "master", "master.Master", "--host", "127.0.0.1", "--port", "0")
        )
        address = _said(master, r"Starting Spark master at (spark://\S+)")
        for number in range(workers):
            place = folder / f"worker-{number}"
            worker = stack.enter_context(
                _process(place, "worker.Worker", address, "--cores", "1", "--memory", "1g")
            )
            _said(worker, r"Successfully registered with master")
        yield address


@contextmanager
def _process(folder: Path, kind: str, *args: str) -> Iterator[Path]:
    folder.mkdir(parents=True)
    log = folder / "log"
    environment = {
        **os.environ,
        "JAVA_HOME": str(java_home()),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_WORKER_DIR": str(folder / "work"),
        "SPARK_DAEMON_MEMORY": "256m",
        "PYSPARK_PYTHON": sys.executable,
        "HOME": str(folder),
        "TMPDIR": str(folder),
    }
    command = [str(_CLASS), f"org.apache.spark.deploy.{kind}", "--webui-port", "0", *args]
    with log.open("wb") as output:
        process = subprocess.Popen(
            command, cwd=folder, env=environment, stdout=output, stderr=subprocess.STDOUT
        )
    try:
        yield log
    finally:
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _said(log: Path, pattern: str) -> str:
    """Wait for a line of a log; its first group, or all of it."""
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        found = re.search(pattern, log.read_text(errors="replace"))
        if found:
            return found[1] if found.groups() else found[0]
        time.sleep(0.2)
    raise TimeoutError(f"{log} does not say {pattern!r}: {log.read_text(errors='replace')[-2000:]}")
