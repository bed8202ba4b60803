"""Real Kafka and a node of ours at the same work, and a table of what both came to."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from rich.box import MARKDOWN
from rich.console import Console
from rich.table import Table

from tests.oracle.java import command_line
from tests.oracle.kafka import HOST, KraftCluster, free_ports, wait_for_port

_TICKS: Final = 100  # a second of /proc/PID/stat
# What the oracle sets smaller than Kafka does.
_DEFAULTS: Final = {
    "num.network.threads": "3",
    "num.io.threads": "8",
    "log.index.size.max.bytes": "10485760",
    "log.cleaner.dedupe.buffer.size": "134217728",
}


@dataclass(frozen=True)
class Measured:
    """`value` in the unit of its line; `cpu` are seconds of the broker."""

    value: float
    cpu: float


class Broker:
    """A broker that runs in a process of its own."""

    def __init__(self, process: subprocess.Popen[bytes], port: int) -> None:
        self.bootstrap = f"{HOST}:{port}"
        self._pid = process.pid

    def cpu(self) -> float:
        """Seconds on the processors so far."""
        fields = Path(f"/proc/{self._pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / _TICKS


@contextmanager
def both(heap: str, settings: Mapping[str, str] | None = None) -> Iterator[tuple[Broker, Broker]]:
    """Kafka and us, in directories that go with them."""
    with tempfile.TemporaryDirectory(prefix="kraftline-beside-") as root:
        kafkas, mine = Path(root, "kafka"), Path(root, "ours")
        kafkas.mkdir()
        mine.mkdir()
        with real(kafkas, heap, settings) as kafka, ours(mine, settings) as us:
            yield kafka, us


@contextmanager
def real(root: Path, heap: str, settings: Mapping[str, str] | None = None) -> Iterator[Broker]:
    cluster = KraftCluster(root, properties={**_DEFAULTS, **(settings or {})}, dynamic=True)
    cluster.format(1)
    properties = cluster.configure(1)
    command = command_line("kafka.Kafka", [str(properties)], heap=heap)
    flags = ["-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20", "-XX:InitiatingHeapOccupancyPercent=35"]
    # As Kafka's own script starts it.
    command = [each for each in command if each != "-XX:+UseSerialGC"]
    command[1:1] = ["-server", *flags]
    with _process(command, root / "server.log", cluster.port(1)) as broker:
        yield broker


@contextmanager
def ours(root: Path, settings: Mapping[str, str] | None = None) -> Iterator[Broker]:
    [port] = free_ports(1)
    command = [sys.executable, "-m", "kraftline", "start"]
    command += ["--override", f"listeners=PLAINTEXT://{HOST}:{port}"]
    command += ["--override", f"log.dirs={root / 'data'}"]
    for name, value in (settings or {}).items():
        command += ["--override", f"{name}={value}"]
    with _process(command, root / "server.log", port) as broker:
        yield broker


@contextmanager
def _process(command: list[str], log: Path, port: int) -> Iterator[Broker]:
    with log.open("wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT)
    try:
        wait_for_port(port)
        yield Broker(process, port)
    finally:
        process.terminate()
        process.wait(60)


@dataclass
class Seen:
    """What both came to in each round, by what it was. Names of rates end in "/s", others are
    times."""

    kafka: dict[str, list[Measured]] = field(default_factory=dict)
    us: dict[str, list[Measured]] = field(default_factory=dict)

    def table(self, digits: int = 1) -> Table:
        """The best rounds; a ratio is how many times quicker we are."""
        found = Table("work", "Kafka", "us", "ratio", "CPU s, Kafka", "us", box=MARKDOWN)
        for name in self.us:
            is_rate = name.endswith("/s")
            pick = max if is_rate else min
            theirs, mine = (
                pick(seen[name], key=lambda each: each.value) for seen in (self.kafka, self.us)
            )
            ratio = mine.value / theirs.value if is_rate else theirs.value / mine.value
            found.add_row(
                name,
                f"{theirs.value:,.{digits}f}",
                f"{mine.value:,.{digits}f}",
                f"{ratio:.2f}x",
                f"{theirs.cpu:.1f}",
                f"{mine.cpu:.1f}",
                style="green" if ratio >= 1 else "red",
            )
        return found


def show(table: Table) -> None:
    """For a person, or whole lines for a program."""
    Console(width=None if sys.stdout.isatty() else 140).print(table)
