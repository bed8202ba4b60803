"""A real Kafka client (admin, producers, consumers) in one JVM, driven from Python."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import cast

from tests.oracle.lines import Json, LineProgram

SASL = {
    "security.protocol": "SASL_PLAINTEXT",
    "sasl.mechanism": "PLAIN",
    "sasl.jaas.config": "org.apache.kafka.common.security.plain.PlainLoginModule required "
    'username="admin" password="secret";',
}


class Driver(LineProgram):
    """`do("createTopic", name="a")` and so on; the ops are the cases of `Driver.java`."""

    main = "Driver"

    def __init__(self, bootstrap: str, settings: Mapping[str, str] | None = None) -> None:
        named = {"bootstrap.servers": bootstrap, **(settings or {})}
        super().__init__([f"{name}={value}" for name, value in named.items()])

    def do(self, op: str, **fields: Json) -> dict[str, Json]:
        return self.ask({"op": op, **fields})

    def partitions(self, topic: str) -> list[dict[str, Json]]:
        """Leader, replicas and isr of each partition."""
        return cast("list[dict[str, Json]]", self.do("describe", name=topic)["partitions"])

    def wait_isr(self, topic: str, size: int, timeout: float = 60) -> None:
        """Return once every partition of the topic has `size` replicas in sync and a leader."""

        def ready() -> bool:
            return all(
                isinstance(p["isr"], list) and len(p["isr"]) == size and p["leader"] != -1
                for p in self.partitions(topic)
            )

        wait_until(ready, f"{topic} to have {size} in sync", timeout)

    def produce(
        self,
        topic: str,
        records: list[Json],
        *,
        partition: int = 0,
        producer: str = "plain",
        together: bool = True,
        settings: Mapping[str, str] | None = None,
    ) -> list[int]:
        """Send records ({"k","v","h","ts"}); `settings` count when the producer is made."""
        answer = self.do(
            "produce",
            topic=topic,
            partition=partition,
            producer=producer,
            together=together,
            settings=dict(settings or {}),
            records=records,
        )
        return cast("list[int]", answer["offsets"])


def wait_until(
    ready: Callable[[], bool], what: str, timeout: float = 60, pause: float = 0.3
) -> None:
    deadline = time.monotonic() + timeout
    while not ready():
        if time.monotonic() > deadline:
            raise TimeoutError(f"waited {timeout} s for {what}")
        time.sleep(pause)
