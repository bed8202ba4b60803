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
import statistics
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

import click
from confluent_kafka import Consumer, Producer, TopicPartition

from benchmarks.beside import Broker, Measured, Seen, both, show
from tests.oracle.java import run

_SAID: Final = re.compile(r"([\d.]+) records/sec")


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


def produce(broker: Broker, topic: str, load: Load) -> Measured:
    """MB/s."""
    before = broker.cpu()
    arguments = ["--topic", topic, "--num-records", str(load.records), "--throughput", "-1"]
    arguments += ["--record-size", str(load.size), "--bootstrap-server", broker.bootstrap]
    arguments += ["--command-property", *load.settings]
    said = run("org.apache.kafka.tools.ProducerPerformance", arguments, timeout=900)
    rate = float(_SAID.findall(said)[-1])
    return Measured(rate * load.size / 2**20, broker.cpu() - before)


def consume(broker: Broker, topic: str, load: Load) -> Measured:
    """MB/s."""
    before = broker.cpu()
    arguments = [broker.bootstrap, topic, str(load.records)]
    amount, nanoseconds = run("ConsumeAssigned", arguments, ours=True, timeout=900).split()
    return Measured(int(amount) / 2**20 / int(nanoseconds) * 1e9, broker.cpu() - before)


def round_trips(broker: Broker, topic: str, count: int) -> tuple[Measured, Measured]:
    """Milliseconds from a send to the arrival: p50 and p99."""
    producer = Producer({"bootstrap.servers": broker.bootstrap, "acks": "all", "linger.ms": 0})
    consumer = Consumer(
        {"bootstrap.servers": broker.bootstrap, "group.id": "none", "fetch.wait.max.ms": 5000}
    )
    consumer.assign([TopicPartition(topic, 0, 0)])
    before, times = broker.cpu(), []
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
    cpu = broker.cpu() - before
    cuts = statistics.quantiles(times, n=100)
    return Measured(cuts[49], cpu), Measured(cuts[98], cpu)


Works = Mapping[str, Callable[[Broker], Iterator[tuple[str, Measured]]]]


def works(scale: float, turn: int) -> Works:
    """What each broker has to do, in its turn."""

    def filled(number: int, load: Load) -> Callable[[Broker], Iterator[tuple[str, Measured]]]:
        def work(broker: Broker) -> Iterator[tuple[str, Measured]]:
            topic = f"perf-{turn}-{number}"
            _create(broker, topic)
            yield f"produce {load.name}, MB/s", produce(broker, topic, load)
            yield f"consume {load.name}, MB/s", consume(broker, topic, load)

        return work

    def trips(broker: Broker) -> Iterator[tuple[str, Measured]]:
        _create(broker, f"trips-{turn}")
        half, most = round_trips(broker, f"trips-{turn}", int(2000 * scale))
        yield "round trip p50, ms", half
        yield "round trip p99, ms", most

    found = {load.name: filled(number, load) for number, load in enumerate(loads(scale))}
    return {**found, "round trips": trips}


def _create(broker: Broker, topic: str) -> None:
    arguments = ["--bootstrap-server", broker.bootstrap, "--create", "--topic", topic]
    run("org.apache.kafka.tools.TopicCommand", [*arguments, "--partitions", "1"])


@click.command()
@click.option("--rounds", default=3, show_default=True, type=click.IntRange(min=1))
@click.option("--scale", default=1.0, show_default=True, help="Of the numbers of records.")
@click.option("--heap", default="1g", show_default=True, help="Of Kafka's JVM.")
def main(rounds: int, scale: float, heap: str) -> None:
    """Throughput and round trips of a node, beside real Kafka."""
    seen = Seen()
    with both(heap) as (theirs, mine):
        for turn in range(rounds):
            for work in works(scale, turn).values():
                for found, broker in ((seen.kafka, theirs), (seen.us, mine)):
                    for name, measured in work(broker):
                        found.setdefault(name, []).append(measured)
    show(seen.table(digits=3))


if __name__ == "__main__":
    main()
