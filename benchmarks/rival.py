"""Real Kafka's own reader of these files, DumpLogSegments, as a command to be timed."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

from benchmarks.inputs import Made
from tests.oracle.jars import NEWEST, jars

VERSION = NEWEST

# Of the three settings tried (Kafka's own script: G1 with 256 MB; the parallel collector with
# 1 GB; this), the quickest on 100 MB of data and on 200,000 metadata records.
_JVM = ("-Xmx512m", "-XX:+UseSerialGC")


class Complaint(RuntimeError):
    """Real Kafka did not read an input as it should have: the benchmark would mean nothing."""


def dump_command(path: Path, *, metadata: bool) -> list[str]:
    how = "--cluster-metadata-decoder" if metadata else "--deep-iteration"
    return [
        "java",
        *_JVM,
        "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
        "-cp",
        f"{jars(VERSION)}/*",
        "org.apache.kafka.tools.DumpLogSegments",
        how,
        "--files",
        str(path),
    ]


def check(made: Made, *, metadata: bool) -> None:
    """Have Kafka read a file outside of any timing: every record, every checksum, no complaint."""
    command = dump_command(made.path, metadata=metadata)
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert process.stdout is not None
    records = 0
    odd: list[bytes] = []
    for line in process.stdout:
        if line.startswith(b"| offset: "):
            records += 1
            if metadata and b'"data":' not in line and b" LeaderChange: " not in line:
                odd.append(line)
        elif not _EXPECTED.match(line):
            odd.append(line)
    if process.wait() or odd or records != made.records:
        said = b"".join(odd[:5]).decode(errors="replace")
        raise Complaint(
            f"{made.path}: {records} of {made.records} records, exit {process.returncode}: {said}"
        )


_EXPECTED = re.compile(rb"Dumping |Log starting offset: |baseOffset: .* isvalid: true$")


def java_version() -> str:
    if shutil.which("java") is None:
        return "none"
    said = subprocess.run(["java", "-version"], capture_output=True, text=True, check=True).stderr
    return said.splitlines()[1].removeprefix("OpenJDK Runtime Environment ").strip("()")
