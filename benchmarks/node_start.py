"""How soon a node answers and how much memory it takes, beside real Kafka:
`python -m benchmarks.node_start`.

Both start on a formatted directory, one after the other, round after round: from the start of the
process to the first answered Metadata request, the best round of each. Then resident memory, idle
and with many partitions, and the start with these. Real Kafka runs with its defaults and the flags
of its start script (`-Xmx1g -Xms1g`, G1). Python's compiled files are there, as after an
installation.
"""

from __future__ import annotations

import os
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import click
import msgspec
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic
from rich.box import MARKDOWN
from rich.console import Console
from rich.table import Table

from tests.node.running import OurNode, RealKafka
from tests.oracle.jars import jars
from tests.oracle.kafka import HOST

# Metadata version 1 of no topic, without a client's name.
_METADATA: Final = struct.pack(">ihhihi", 14, 3, 1, 1, -1, 0)
_PAGE: Final = os.sysconf("SC_PAGE_SIZE")
_PER_TOPIC: Final = 1000
_SETTLE_SECONDS: Final = 3
# What the oracle sets smaller than Kafka does.
_DEFAULTS: Final = {
    "num.network.threads": "3",
    "num.io.threads": "8",
    "log.index.size.max.bytes": "10485760",
    "log.cleaner.dedupe.buffer.size": "134217728",
}


class Measured(msgspec.Struct, frozen=True):
    """`seconds` to the first answer; bytes that are resident once it is quiet; seconds of CPU."""

    seconds: float
    resident: int
    cpu: float


class Rival:
    """A node that can be started; `command` is run in an environment of its own."""

    def __init__(self, port: int, command: list[str], environment: Mapping[str, str]) -> None:
        self.port = port
        self._command = command
        self._environment = dict(environment)

    def measure(self, partitions: int = 0) -> Measured:
        """Start, wait for an answer, make partitions, and stop."""
        began = time.perf_counter()
        process = subprocess.Popen(
            self._command,
            env=self._environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            _first_answer(process, self.port)
            seconds = time.perf_counter() - began
            cpu = _cpu(process.pid)
            if partitions:
                _make_partitions(f"{HOST}:{self.port}", partitions)
            time.sleep(_SETTLE_SECONDS)
            with open(f"/proc/{process.pid}/statm") as file:
                resident = int(file.read().split()[1]) * _PAGE
            return Measured(seconds, resident, cpu)
        finally:
            process.terminate()
            process.wait()


def _first_answer(process: subprocess.Popen[bytes], port: int) -> None:
    while process.poll() is None:
        try:
            with socket.create_connection((HOST, port), 10) as channel:
                channel.sendall(_METADATA)
                # Brokers, with at least one: before that Kafka answers, but cannot serve.
                answer = channel.recv(4096)
                if len(answer) > 12 and struct.unpack_from(">i", answer, 8)[0] > 0:
                    return
        except OSError:
            time.sleep(0.001)
    raise RuntimeError("the node ended before it answered")


def _cpu(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _make_partitions(bootstrap: str, count: int) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for number in range(count // _PER_TOPIC):
        for done in admin.create_topics(
            [NewTopic(f"topic-{number}", _PER_TOPIC, 1)], request_timeout=300
        ).values():
            done.result(300)


def our_node(root: Path) -> Rival:
    node = OurNode(root)
    node.format()
    environment = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    environment["PYTHONPYCACHEPREFIX"] = str(root / "compiled")
    command = [sys.executable, "-m", "kraftline", "start", str(node.configure())]
    return Rival(node.port, command, environment)


def real_kafka(root: Path) -> Rival:
    kafka = RealKafka(root, _DEFAULTS)
    kafka.cluster.format(1)
    flags = ["-Xmx1g", "-Xms1g", "-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20"]
    level = "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn"
    settings = str(kafka.cluster.configure(1))
    command = ["java", *flags, level, "-cp", f"{jars()}/*", "kafka.Kafka", settings]
    return Rival(kafka.cluster.port(1), command, os.environ)


@click.command()
@click.option("--rounds", type=click.IntRange(min=1), default=3)
@click.option("--partitions", type=click.IntRange(min=_PER_TOPIC), default=10_000)
def main(rounds: int, partitions: int) -> None:
    """Kraftline beside real Kafka: start and memory."""
    root = Path(tempfile.mkdtemp(prefix="kraftline-"))
    try:
        rivals = (our_node(root / "ours"), real_kafka(root / "kafka"))
        rivals[0].measure()  # compiles
        idle = [[rival.measure() for rival in rivals] for _ in range(rounds)]
        made = [rival.measure(partitions) for rival in rivals]
        full = [rival.measure() for rival in rivals]
    finally:
        shutil.rmtree(root)
    table = Table("work", "us", "Kafka", "ratio", "reach", "aim", box=MARKDOWN)
    best = [min((turn[n] for turn in idle), key=lambda each: each.seconds) for n in (0, 1)]
    many = f"{partitions:,} partitions"
    _row(table, "process start to first answered Metadata", [b.seconds for b in best], "s", 6)
    _row(table, "CPU until then", [b.cpu for b in best], "s")
    _row(
        table, "resident memory, idle", [min(t[n].resident for t in idle) for n in (0, 1)], "MB", 4
    )
    _row(table, f"resident memory, {many} made", [each.resident for each in made], "MB", 4)
    _row(table, f"resident memory, started with {many}", [each.resident for each in full], "MB", 4)
    _row(table, f"start with {many}", [each.seconds for each in full], "s")
    console = Console()
    (console if console.is_terminal else Console(width=120)).print(table)


def _row(table: Table, work: str, values: list[float], unit: str, reach: int | None = None) -> None:
    scale, digits = (1e6, 0) if unit == "MB" else (1, 2)
    ours, kafkas = (f"{value / scale:,.{digits}f} {unit}" for value in values)
    aims = {None: ("", ""), 6: ("1/6", "1/12"), 4: ("1/4", "1/6")}[reach]
    table.add_row(work, ours, kafkas, f"1/{values[1] / values[0]:.1f}", *aims)


if __name__ == "__main__":
    main()
