"""Transactions beside real Kafka: `python -m benchmarks.transactions`.

Transactions of 100 records, one after the other, with confluent-kafka (which adds partitions before
it writes) and with Kafka's own producer (of transaction.version 2), to one partition and to ten;
and small ones with offsets of a group, as consume-transform-produce has them. The same client, with
one broker and then with the other; real Kafka runs with its defaults. The best of some rounds.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

import click
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from benchmarks.beside import Broker, Measured, Seen, both, show
from tests.oracle.java import JavaFailed, run

_RECORDS = 100
_SIZE = 100
_SECONDS = 60.0
_ATTEMPTS = 3


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
    """Transactions a second. Kafka 4.3.1 refuses its own producer now and then, as being in an
    invalid state (one run in twelve): then it begins anew."""
    arguments = [broker.bootstrap, topic, topic, str(count), str(_RECORDS), str(_SIZE)]
    for _ in range(_ATTEMPTS - 1):
        try:
            return _java(arguments, count)
        except JavaFailed as failed:
            if "InvalidTxnStateException" not in str(failed):
                raise
            click.echo(f"{broker.bootstrap}: {failed}; again", err=True)
    return _java(arguments, count)


def _java(arguments: list[str], count: int) -> float:
    return count / int(run("TransactionalProduce", arguments, ours=True, timeout=900)) * 1e9


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


@click.command()
@click.option("--rounds", default=3, show_default=True, type=click.IntRange(min=1))
@click.option("--scale", default=1.0, show_default=True, help="Of the numbers of transactions.")
@click.option("--heap", default="1g", show_default=True, help="Of Kafka's JVM.")
def main(rounds: int, scale: float, heap: str) -> None:
    """Transactions of a node, beside real Kafka."""
    seen = Seen()
    with both(heap) as (theirs, mine):
        for turn in range(rounds):
            for number, (name, (work, partitions, count)) in enumerate(_WORKS.items()):
                topic = f"transactions-{turn}-{number}"
                for found, broker in ((seen.kafka, theirs), (seen.us, mine)):
                    _create(broker, topic, partitions)
                    before = broker.cpu()
                    rate = work(broker, topic, max(1, int(count * scale)))
                    measured = Measured(rate, broker.cpu() - before)
                    found.setdefault(f"{name}, 1/s", []).append(measured)
    show(seen.table())


if __name__ == "__main__":
    main()
