"""What a broker counts while it works: by topic, and by API and version.

Plain numbers that are added to in the event loop: whoever reads them makes rates and quantiles of
them. A topic's numbers go with it; the totals of the broker keep what they were.
"""

from __future__ import annotations

import struct
import time
from collections.abc import Awaitable, Iterator
from typing import TYPE_CHECKING, Final

from kraftline.broker.cache import MetadataCache
from kraftline.schema.api.registry import api
from kraftline.schema.api.table import APIS
from kraftline.schema.uuids import Uuid
from kraftline.server.parts import Answer

if TYPE_CHECKING:
    from kraftline.server.connection import Connection, Handle

_KEY_AND_VERSION: Final = struct.Struct(">hh")
_HEAD: Final = _KEY_AND_VERSION.size
# Times are counted by half octaves of microseconds: up to 2^36, which is nineteen hours.
_BUCKETS: Final = 74
_WINDOW_SECONDS: Final = 60.0
_FORGET: Final = 1000  # topics that are gone, before their numbers are added up


class TopicMeter:
    """What went in and out of one topic, or of all that are gone."""

    __slots__ = (
        "bytes_in",
        "bytes_out",
        "failed_fetches",
        "failed_produces",
        "fetches",
        "messages_in",
        "produces",
        "replication_bytes_out",
    )

    def __init__(self) -> None:
        for name in self.__slots__:
            setattr(self, name, 0)

    bytes_in: int
    bytes_out: int
    failed_fetches: int
    failed_produces: int
    fetches: int
    messages_in: int
    produces: int
    replication_bytes_out: int

    def add(self, other: TopicMeter) -> None:
        for name in self.__slots__:
            setattr(self, name, getattr(self, name) + getattr(other, name))


class TopicMeters:
    """One to a topic that was asked for; by name, and by id where clients use that."""

    def __init__(self, cache: MetadataCache) -> None:
        self._cache = cache
        self._gone = TopicMeter()
        self._by_name: dict[str, TopicMeter] = {}
        self._by_key: dict[str | Uuid, TopicMeter] = {}

    def of(self, topic: str | Uuid) -> TopicMeter:
        return self._by_key.get(topic) or self._new(topic)

    def _new(self, topic: str | Uuid) -> TopicMeter:
        topics = self._cache.image.topics
        found = topics.named(topic) if isinstance(topic, str) else topics.by_id.get(topic)
        if found is None:
            return self._gone  # no topic: it counts for the broker alone
        if len(self._by_key) > 2 * len(topics.ids) + _FORGET:
            self.current()  # nobody looks at them, and topics come and go
        meter = self._by_name.setdefault(found.name, TopicMeter())
        self._by_key[topic] = meter
        return meter

    def current(self) -> dict[str, TopicMeter]:
        """Of the topics that there are."""
        ids, by_id = self._cache.image.topics.ids, self._cache.image.topics.by_id
        for name in [name for name in self._by_name if name not in ids]:
            self._gone.add(self._by_name.pop(name))
        self._by_key = {
            key: meter
            for key, meter in self._by_key.items()
            if (key in ids if isinstance(key, str) else key in by_id)
        }
        return self._by_name

    def total(self) -> TopicMeter:
        """Of all topics that this broker ever had."""
        found = TopicMeter()
        for each in (self._gone, *self.current().values()):
            found.add(each)
        return found


class RequestMeter:
    """Requests of one version of an API, and how long they took: from their last byte to the
    answer's first, waiting included. Quantiles are of the last minute or two."""

    __slots__ = ("_before", "_counts", "_since", "count", "seconds")

    def __init__(self) -> None:
        self.count = 0
        self.seconds = 0.0
        self._counts = [0] * _BUCKETS
        self._before = [0] * _BUCKETS
        self._since = time.monotonic()

    def took(self, seconds: float) -> None:
        self.count += 1
        self.seconds += seconds
        micros = seconds * 1e6
        bucket = int(micros * micros).bit_length()
        self._counts[bucket if bucket < _BUCKETS else -1] += 1

    def recent(self) -> list[int]:
        """How many there were of each length of time."""
        now = time.monotonic()
        found = [a + b for a, b in zip(self._before, self._counts, strict=True)]
        if now - self._since > _WINDOW_SECONDS:
            self._before, self._counts, self._since = self._counts, [0] * _BUCKETS, now
        return found


def quantile(counts: list[int], share: float) -> float:
    """Milliseconds that such a share of requests took at most; between the bounds of a bucket it is
    a guess."""
    wanted = share * sum(counts)
    seen = 0
    for bucket, count in enumerate(counts):
        if count and seen + count >= wanted:
            least, most = _bound(bucket - 1), _bound(bucket)
            return (least + (most - least) * (wanted - seen) / count) / 1000
        seen += count
    return 0.0


def _bound(bucket: int) -> float:
    """The microseconds below which what is in a bucket took."""
    return 2.0 ** (bucket / 2) if bucket >= 0 else 0.0


class RequestMeters:
    """By key and version of the API; `around` counts what a listener is asked."""

    def __init__(self) -> None:
        self._all: dict[bytes, RequestMeter] = {}
        self._other = RequestMeter()

    def __iter__(self) -> Iterator[tuple[int, int, RequestMeter]]:
        for head, meter in sorted(self._all.items()):
            key, version = _KEY_AND_VERSION.unpack(head)
            yield key, version, meter

    def around(self, handle: Handle) -> Handle:
        """The same answers, counted. What is not answered at all is not."""
        clock = time.perf_counter
        known = self._all.get

        def handled(frame: memoryview, connection: Connection) -> Answer | Awaitable[Answer]:
            began = clock()
            head = bytes(frame[:_HEAD])
            answer = handle(frame, connection)
            meter = known(head) or self._new(head)
            if answer is None or isinstance(answer, list):
                meter.took(clock() - began)
                return answer
            return later(answer, meter, began)

        async def later(answer: Awaitable[Answer], meter: RequestMeter, began: float) -> Answer:
            made = await answer
            meter.took(clock() - began)
            return made

        return handled

    def _new(self, head: bytes) -> RequestMeter:
        """Of what was answered for the first time. Not everything has a key in front: what a
        client says in the course of an old SASL exchange has none."""
        if len(head) < _HEAD:
            return self._other
        key, version = _KEY_AND_VERSION.unpack(head)
        if key not in APIS or version not in api(key).versions:
            return self._other
        return self._all.setdefault(head, RequestMeter())
