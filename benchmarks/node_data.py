"""The way of the data beside real Kafka: `python -m benchmarks.node_data`.

The same clients, with one broker and then with the other, work by work, so that both meet the
machine in the same mood: `kafka-producer-perf-test` (Kafka's own class), a consumer with the
settings of `kafka-consumer-perf-test` but with its partitions assigned, and the round trip of one
small record through confluent-kafka. Real Kafka runs with its defaults. The best of some rounds.
Beside the rates stands what the broker itself took of the processors: on a machine of two cores
the client is most of the work.
"""

from __future__ import annotations

import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import click
from confluent_kafka import Consumer, Producer, TopicPartition
from rich.box import MARKDOWN
from rich.console import Console
from rich.table import Table

from tests.oracle.java import command_line, run
from tests.oracle.kafka import HOST, KraftCluster, free_ports, wait_for_port

_TICKS: Final = 100  # a second of /proc/PID/stat
_SAID: Final = re.compile(r"([\d.]+) records/sec")
# What the oracle sets smaller than Kafka does.
_DEFAULTS: Final = {
    "num.network.threads": "3",
    "num.io.threads": "8",
    "log.index.size.max.bytes": "10485760",
    "log.cleaner.dedupe.buffer.size": "134217728",
}


@dataclass(frozen=True)
class Load:
    """Records of one size, sent with some settings, then consumed."""

    name: str
    size: int
    records: int
    settings: tuple[str, ...]

    @property
    def megabytes(self) -> float:
        return self.size * self.records / 2**20


def loads(scale: float) -> list[Load]:
    small, large = ("acks=1",), ("acks=all", "batch.size=131072", "linger.ms=5")
    return [
        Load("1 KB, acks=1", 1000, int(400_000 * scale), small),
        Load("1 KB, acks=all, 128 KB batch", 1000, int(800_000 * scale), large),
        Load("100 B, acks=1", 100, int(2_000_000 * scale), small),
        Load("100 B, acks=all, 128 KB batch", 100, int(4_000_000 * scale), large),
    ]


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

    def produce(self, topic: str, load: Load) -> Measured:
        """MB/s."""
        before = self.cpu()
        arguments = ["--topic", topic, "--num-records", str(load.records), "--throughput", "-1"]
        arguments += ["--record-size", str(load.size), "--bootstrap-server", self.bootstrap]
        arguments += ["--command-property", *load.settings]
        said = run("org.apache.kafka.tools.ProducerPerformance", arguments, timeout=900)
        rate = float(_SAID.findall(said)[-1])
        return Measured(rate * load.size / 2**20, self.cpu() - before)

    def consume(self, topic: str, load: Load) -> Measured:
        """MB/s."""
        before = self.cpu()
        arguments = [self.bootstrap, topic, str(load.records)]
        amount, nanoseconds = run("ConsumeAssigned", arguments, ours=True, timeout=900).split()
        return Measured(int(amount) / 2**20 / int(nanoseconds) * 1e9, self.cpu() - before)

    def round_trips(self, topic: str, count: int) -> tuple[Measured, Measured]:
        """Milliseconds from a send to the arrival: p50 and p99."""
        producer = Producer({"bootstrap.servers": self.bootstrap, "acks": "all", "linger.ms": 0})
        consumer = Consumer(
            {"bootstrap.servers": self.bootstrap, "group.id": "none", "fetch.wait.max.ms": 5000}
        )
        consumer.assign([TopicPartition(topic, 0, 0)])
        before, times = self.cpu(), []
        for number in range(count + 20):
            start = time.perf_counter()
            producer.produce(topic, b"x" * 100, partition=0)
            producer.flush()
            message = consumer.poll(10)
            assert message is not None
            assert message.error() is None, message.error()
            if number >= 20:  # the first ones connect
                times.append((time.perf_counter() - start) * 1000)
        consumer.close()
        cpu = self.cpu() - before
        cuts = statistics.quantiles(times, n=100)
        return Measured(cuts[49], cpu), Measured(cuts[98], cpu)


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


Works = Mapping[str, Callable[[Broker], Iterator[tuple[str, Measured]]]]


def works(scale: float, turn: int) -> Works:
    """What each broker has to do, in its turn."""

    def filled(number: int, load: Load) -> Callable[[Broker], Iterator[tuple[str, Measured]]]:
        def work(broker: Broker) -> Iterator[tuple[str, Measured]]:
            topic = f"perf-{turn}-{number}"
            _create(broker, topic)
            yield f"produce {load.name}, MB/s", broker.produce(topic, load)
            yield f"consume {load.name}, MB/s", broker.consume(topic, load)

        return work

    def trips(broker: Broker) -> Iterator[tuple[str, Measured]]:
        _create(broker, f"trips-{turn}")
        half, most = broker.round_trips(f"trips-{turn}", int(2000 * scale))
        yield "round trip p50, ms", half
        yield "round trip p99, ms", most

    found = {load.name: filled(number, load) for number, load in enumerate(loads(scale))}
    return {**found, "round trips": trips}


def _create(broker: Broker, topic: str) -> None:
    arguments = ["--bootstrap-server", broker.bootstrap, "--create", "--topic", topic]
    run("org.apache.kafka.tools.TopicCommand", [*arguments, "--partitions", "1"])


def _better(name: str, seen: list[Measured]) -> Measured:
    pick = max if name.endswith("MB/s") else min
    return pick(seen, key=lambda measured: measured.value)


def table(kafka: Mapping[str, list[Measured]], us: Mapping[str, list[Measured]]) -> Table:
    found = Table("work", "Kafka", "us", "ratio", "CPU s, Kafka", "us", box=MARKDOWN)
    for name, seen in us.items():
        theirs, mine = _better(name, kafka[name]), _better(name, seen)
        rate = name.endswith("MB/s")
        ratio = mine.value / theirs.value if rate else theirs.value / mine.value
        form = ".1f" if rate else ".3f"
        found.add_row(
            name,
            f"{theirs.value:{form}}",
            f"{mine.value:{form}}",
            f"{ratio:.2f}x",
            f"{theirs.cpu:.1f}",
            f"{mine.cpu:.1f}",
            style="green" if ratio >= 1 else "red",
        )
    return found


@click.command()
@click.option("--rounds", default=3, show_default=True, type=click.IntRange(min=1))
@click.option("--scale", default=1.0, show_default=True, help="Of the numbers of records.")
@click.option("--heap", default="1g", show_default=True, help="Of Kafka's JVM.")
def main(rounds: int, scale: float, heap: str) -> None:
    """Throughput and round trips of a node, beside real Kafka."""
    console = Console(width=None if sys.stdout.isatty() else 120)
    kafka: dict[str, list[Measured]] = {}
    us: dict[str, list[Measured]] = {}
    root = Path(tempfile.mkdtemp(prefix="kraftline-"))
    (root / "kafka").mkdir()
    (root / "ours").mkdir()
    try:
        with real(root / "kafka", heap) as theirs, ours(root / "ours") as mine:
            for turn in range(rounds):
                for work in works(scale, turn).values():
                    for seen, broker in ((kafka, theirs), (us, mine)):
                        for name, measured in work(broker):
                            seen.setdefault(name, []).append(measured)
    finally:
        shutil.rmtree(root)
    console.print(table(kafka, us))


if __name__ == "__main__":
    main()
