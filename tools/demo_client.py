"""What `make demo` does with a node, through a real client: makes topics, writes and reads."""

from __future__ import annotations

import sys
import time

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

RECORDS = 100_000


def main(bootstrap: str) -> None:
    settings: dict[str, str | int | float | bool] = {"bootstrap.servers": bootstrap}
    admin = AdminClient(settings)
    for made in admin.create_topics(
        [NewTopic("orders", 3, 1), NewTopic("payments", 1, 1)]
    ).values():
        made.result(10)
    began = time.perf_counter()
    producer = Producer(settings | {"linger.ms": 5, "enable.idempotence": True})
    for number in range(RECORDS):
        producer.produce("orders", key=b"%d" % number, value=b"order %d" % number)
        producer.poll(0)
    assert producer.flush(30) == 0
    print(
        f"wrote {RECORDS:,} records in {time.perf_counter() - began:.2f} s (acks=all, idempotent)"
    )
    began = time.perf_counter()
    consumer = Consumer(settings | {"group.id": "demo", "enable.auto.commit": False})
    consumer.assign([TopicPartition("orders", partition, 0) for partition in range(3)])
    seen = 0
    while seen < RECORDS:
        messages = consumer.consume(10_000, timeout=10)
        assert messages, "records are missing"
        seen += len(messages)
    print(f"read  {seen:,} records in {time.perf_counter() - began:.2f} s")
    consumer.close()
    for gone in admin.delete_topics(["payments"]).values():
        gone.result(10)


if __name__ == "__main__":
    main(sys.argv[1])
