"""Transactions beside real Kafka: `python -m benchmarks.transactions`.

Transactions of 100 records, one after the other, with confluent-kafka (which adds partitions before
it writes) and with Kafka's own producer (of transaction.version 2), to one partition and to ten;
and small ones with offsets of a group, as consume-transform-produce has them. The same client, with
one broker and then with the other; real Kafka runs with its defaults. The best of some rounds.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import click
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic
from rich.box import MARKDOWN
from rich.console import Console
from rich.table import Table

from benchmarks.node_data import Broker, Measured, ours, real
from tests.oracle.java import run

_RECORDS = 100
_SIZE = 100
_SECONDS = 60.0


def confluent(broker: Broker, topic: str, count: int) -> float:
    """Transactions a second."""
    producer = Producer(
        {"bootstrap.servers": broker.bootstrap, "transactional.id": topic, "linger.ms": 5}
    )
    producer.init_transactions(_SECONDS)
    value = b"x" * _SIZE

    def some(transactions: int) -> None:
        for _ in range(transactions):
            producer.begin_transaction()
            for _ in range(_RECORDS):
                producer.produce(topic, value)
            producer.commit_transaction(_SECONDS)

    some(count // 5 + 1)
    start = time.perf_counter()
    some(count)
    return count / (time.perf_counter() - start)


def java(broker: Broker, topic: str, count: int) -> float:
    """Transactions a second."""
    arguments = [broker.bootstrap, topic, topic, str(count), str(_RECORDS), str(_SIZE)]
    nanoseconds = int(run("TransactionalProduce", arguments, ours=True, timeout=900))
    return count / nanoseconds * 1e9


def with_offsets(broker: Broker, topic: str, count: int) -> float:
    """Transactions of ten records and an offset, a second."""
    settings: dict[str, str | int | float | bool] = {"bootstrap.servers": broker.bootstrap}
    producer = Producer({**settings, "transactional.id": topic, "linger.ms": 0})
    consumer = Consumer({**settings, "group.id": topic})
    metadata = consumer.consumer_group_metadata()
    producer.init_transactions(_SECONDS)

    def some(transactions: int, first: int) -> None:
        for turn in range(transactions):
            producer.begin_transaction()
            for _ in range(10):
                producer.produce(topic, b"x" * _SIZE)
            offset = TopicPartition(topic, 0, first + turn)
            producer.send_offsets_to_transaction([offset], metadata, _SECONDS)
            producer.commit_transaction(_SECONDS)

    some(count // 5 + 1, 0)
    start = time.perf_counter()
    some(count, count)
    took = time.perf_counter() - start
    consumer.close()
    return count / took


Work = Callable[[Broker, str, int], float]
_WORKS: Mapping[str, tuple[Work, int, int]] = {
    "confluent-kafka, 1 partition": (confluent, 1, 300),
    "confluent-kafka, 10 partitions": (confluent, 10, 300),
    "Java, 1 partition": (java, 1, 1000),
    "Java, 10 partitions": (java, 10, 1000),
    "with offsets, confluent-kafka": (with_offsets, 1, 300),
}


def _create(broker: Broker, topic: str, partitions: int) -> None:
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    for done in admin.create_topics([NewTopic(topic, partitions, 1)]).values():
        done.result(_SECONDS)


def table(kafka: Mapping[str, list[Measured]], us: Mapping[str, list[Measured]]) -> Table:
    found = Table("transactions/s", "Kafka", "us", "ratio", "CPU s, Kafka", "us", box=MARKDOWN)
    for name, seen in us.items():
        theirs = max(kafka[name], key=lambda each: each.value)
        mine = max(seen, key=lambda each: each.value)
        ratio = mine.value / theirs.value
        found.add_row(
            name,
            f"{theirs.value:.0f}",
            f"{mine.value:.0f}",
            f"{ratio:.2f}x",
            f"{theirs.cpu:.1f}",
            f"{mine.cpu:.1f}",
            style="green" if ratio >= 1 else "red",
        )
    return found


@click.command()
@click.option("--rounds", default=3, show_default=True, type=click.IntRange(min=1))
@click.option("--scale", default=1.0, show_default=True, help="Of the numbers of transactions.")
@click.option("--heap", default="1g", show_default=True, help="Of Kafka's JVM.")
def main(rounds: int, scale: float, heap: str) -> None:
    """Transactions of a node, beside real Kafka."""
    kafka: dict[str, list[Measured]] = {}
    us: dict[str, list[Measured]] = {}
    root = Path(tempfile.mkdtemp(prefix="kraftline-"))
    (root / "kafka").mkdir()
    (root / "ours").mkdir()
    try:
        with real(root / "kafka", heap) as theirs, ours(root / "ours") as mine:
            for turn in range(rounds):
                for number, (name, (work, partitions, count)) in enumerate(_WORKS.items()):
                    topic = f"transactions-{turn}-{number}"
                    for seen, broker in ((kafka, theirs), (us, mine)):
                        _create(broker, topic, partitions)
                        before = broker.cpu()
                        rate = work(broker, topic, max(1, int(count * scale)))
                        measured = Measured(rate, broker.cpu() - before)
                        seen.setdefault(name, []).append(measured)
    finally:
        shutil.rmtree(root)
    Console(width=None if sys.stdout.isatty() else 120).print(table(kafka, us))


if __name__ == "__main__":
    main()
