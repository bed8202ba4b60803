"""What clients may use: thousands of times beside Kafka's own quota manager, and once for real."""

from __future__ import annotations

import time
from random import Random

import msgspec
import pytest

from kraftline.broker.quotas.quota import Quota
from kraftline.broker.quotas.rate import Windows
from kraftline.metadata.image.client_quotas import ClientQuotasDelta, ClientQuotasImage
from kraftline.schema.api.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasRequestEntityData,
    AlterClientQuotasRequestEntryData,
    AlterClientQuotasResponse,
    OpData,
)
from kraftline.schema.api.fetch import FetchResponse
from kraftline.schema.api.metadata import MetadataRequest, MetadataResponse
from kraftline.schema.api.produce import ProduceResponse
from kraftline.schema.metadata.client_quota_record import ClientQuotaRecord, EntityData
from tests.broker.running import create_topic
from tests.broker.stories import batch, fetch, produce, wanted
from tests.broker.talking import Talk
from tests.effort import rounds
from tests.oracle.lines import LineProgram
from tests.security.secured import Secured

pytestmark = pytest.mark.oracle
KEY = "producer_byte_rate"
NAMES = ("alice", "bob", "carol")
IDS = ("app", "tool", "")


class QuotaDecisions(LineProgram):
    main = "QuotaDecisions"


class Ours:
    """Our side of what is asked there."""

    def __init__(self, windows: int, seconds: int) -> None:
        self.quota = Quota(KEY, Windows(windows, seconds * 1000))
        self.image = ClientQuotasImage()

    def change(self, entity: dict[str, str | None], limit: float | None) -> None:
        kinds = {"user": "user", "client": "client-id"}
        named = tuple(
            EntityData(entity_type=kinds[kind], entity_name=name) for kind, name in entity.items()
        )
        delta = ClientQuotasDelta(self.image)
        delta.replay(
            ClientQuotaRecord(entity=named, key=KEY, value=limit or 0.0, remove=limit is None)
        )
        self.image = delta.apply()
        self.quota.follow(self.image, delta.changes)

    def record(self, user: str, client: str, value: float, now: int) -> tuple[int, float]:
        if not self.quota.is_enabled:
            return 0, 1.7976931348623157e308
        silent = self.quota.record(user, client, value, now)
        most = self.quota.most_in_windows(user, client)
        return silent, most if most != float("inf") else 1.7976931348623157e308


def test_silence_is_as_long_as_kafka_would_want_it() -> None:
    random = Random(3)
    with QuotaDecisions() as kafka:
        for _ in range(rounds(40)):
            windows, seconds = random.choice(((11, 1), (11, 1), (3, 2), (2, 1)))
            kafka.ask({"op": "new", "windows": windows, "seconds": seconds})
            ours = Ours(windows, seconds)
            now = time.time_ns() // 1_000_000
            for _ in range(60):
                if random.random() < 0.15:
                    entity: dict[str, str | None] = {}
                    while not entity:
                        if random.random() < 0.6:
                            entity["user"] = random.choice((*NAMES, None))
                        if random.random() < 0.6:
                            entity["client"] = random.choice(("app", "tool", None))
                    limit = random.choice((100.0, 1000.0, 5000.0, 0.5, None))
                    kafka.ask({"op": "quota", "limit": limit, **entity})
                    ours.change(entity, limit)
                    continue
                now += random.choice((0, 1, 10, 200, 999, 1000, 1001, 3000, 15_000))
                user, client = random.choice(NAMES), random.choice(IDS)
                value = random.choice((1, 10, 100, 1234, 50_000, 0))
                said = kafka.ask(
                    {"op": "record", "user": user, "client": client, "value": value, "now": now}
                )
                silent, most = ours.record(user, client, value, now)
                assert (silent, most) == (said["silent"], said["most"])


def _set(node: Secured, key: str, value: float | None) -> None:
    """The quota of the client that asks here."""
    op = OpData(key=key, value=value or 0.0, remove=value is None)
    entity = AlterClientQuotasRequestEntityData(entity_type="client-id", entity_name="talk")
    request = AlterClientQuotasRequest(
        entries=(AlterClientQuotasRequestEntryData(entity=(entity,), ops=(op,)),)
    )
    with Talk(node.plain, "admin") as admin:
        answer = admin.ask_for(AlterClientQuotasResponse, request, 1)
        assert not answer.entries[0].error_code, answer


class Said(msgspec.Struct, frozen=True):
    """`silent` to the second."""

    what: str
    silent: int
    size: int | None = None


def _story(node: Secured, name: str) -> list[Said]:
    topic = name, create_topic(node.plain, name)
    said = []
    with Talk(node.plain) as talk:
        _set(node, "producer_byte_rate", 60_000.0)
        # Until it counts: ten seconds may be used at once, so what is sent in vain is little.
        deadline = time.monotonic() + 60
        small, large = batch(b"x"), batch(b"x" * 320_000)
        silent = 0
        start = time.monotonic()
        while not silent and time.monotonic() < deadline:
            start = time.monotonic()
            answer = talk.ask_for(ProduceResponse, produce(topic, [(0, large)]), 9)
            silent = answer.throttle_time_ms
        said.append(Said("too much is produced", int(silent > 0)))
        answer = talk.ask_for(ProduceResponse, produce(topic, [(0, small)]), 9)
        said.append(Said("and not heard so long", int(time.monotonic() - start >= silent / 1000)))
        _set(node, "producer_byte_rate", None)
    with Talk(node.plain) as talk:
        _set(node, "consumer_byte_rate", 20_000.0)
        most, deadline = 0, time.monotonic() + 60
        while most != 200_000 and time.monotonic() < deadline:
            request = fetch(topic, wanted(0, 0, partition_max_bytes=250_000), most=250_000)
            got = talk.ask_for(FetchResponse, request, 12)
            # A batch is never cut, but ten seconds of the limit are all that it asks for.
            most = 200_000 if got.throttle_time_ms > 1000 else 0
            sizes = [len(p.records or b"") for t in got.responses for p in t.partitions]
        said.append(Said("too much is fetched", int(got.throttle_time_ms > 1000), sum(sizes)))
        _set(node, "consumer_byte_rate", None)
    with Talk(node.plain) as talk:
        _set(node, "request_percentage", 0.0001)
        silent, deadline = 0, time.monotonic() + 60
        while not silent and time.monotonic() < deadline:
            told = talk.ask_for(MetadataResponse, MetadataRequest(topics=()), 12)
            silent = told.throttle_time_ms
        said.append(Said("requests take too long", silent))
        _set(node, "request_percentage", None)
    return said


def test_who_uses_too_much_is_silenced_as_by_kafka(
    kafka_secured: Secured, ours_secured: Secured
) -> None:
    assert _story(ours_secured, "quotas") == _story(kafka_secured, "quotas")
