"""Fetch (key 1), versions 4-18.

- Sessions from version 7 on (`fetch_sessions`), topics by their ids from 13 on.
- Answered at once where there are min_bytes, an error, or nothing to wait for; else when appends
  have brought that much, and after max_wait_ms in any case.
- At most max_bytes and fetch.max.bytes in all, and partition_max_bytes of a partition; but the
  first partition that has something gives at least one batch, or nobody would get on.
- read_committed reads up to the last stable offset, with the transactions that were aborted.
- A wrong leader is told the right one from version 16 on.
- Records go from their files to the socket.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable
from typing import Final

import msgspec

from kraftline.broker.context import Context
from kraftline.broker.fetch_reading import Asker, asker, read, unread
from kraftline.broker.fetch_sessions import Key, Plan, records_size
from kraftline.broker.leaders import current_leader, endpoint
from kraftline.broker.partition import Partition
from kraftline.metadata.access import Operation, Resource
from kraftline.metadata.image import MetadataImage
from kraftline.records.record import Codec
from kraftline.schema.api.error_codes import ErrorCode
from kraftline.schema.api.fetch import (
    FetchableTopicResponse,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionData,
)
from kraftline.schema.codec import encode
from kraftline.schema.types import ZERO

_TOPIC_IDS: Final = 13
_TELLS_LEADER: Final = 16
_KNOWS_STORAGE_ERROR: Final = 6
_TAKES_ZSTD: Final = 10


class _Place(msgspec.Struct, frozen=True, gc=False):
    """A partition to be read, or the error that stands for it."""

    key: Key
    wanted: FetchPartition
    topic: str
    partition: Partition | int


def answer(request: FetchRequest, context: Context) -> FetchResponse | Awaitable[FetchResponse]:
    broker = context.broker
    start = time.perf_counter_ns()
    plan = broker.fetch_sessions.plan(request, context.version)
    who = asker(request, context.version)
    places, unknown = _places(plan, who, context)
    most = min(request.max_bytes, broker.fetch_max_bytes)
    if broker.quotas.is_enabled and not who.is_replica:
        most = min(most, broker.quotas.most_fetched(context))
    least = min(request.min_bytes, most)
    found = _read_all(places, who, most)
    size = sum(map(records_size, found.values()))
    if (
        request.max_wait_ms <= 0
        or not places
        or size >= least
        or any(each.error_code or each.diverging_epoch.epoch >= 0 for each in found.values())
    ):
        return _response(plan, {**found, **unknown}, who, context, start)
    return _Wait(request.max_wait_ms, least, most, places, found, who).then(plan, context)


def failed(request: FetchRequest, error: ErrorCode, context: Context) -> FetchResponse:
    """Before version 13 the error is told of every partition too: old clients look there."""
    topics: tuple[FetchableTopicResponse, ...] = ()
    if context.version < _TOPIC_IDS:
        topics = tuple(
            FetchableTopicResponse(
                topic=topic.topic,
                partitions=tuple(_unknown(each, error) for each in topic.partitions),
            )
            for topic in request.topics
        )
    return FetchResponse(error_code=error, session_id=request.session_id, responses=topics)


def _places(
    plan: Plan, who: Asker, context: Context
) -> tuple[list[_Place], dict[Key, PartitionData]]:
    """What can be read, and what need not be looked for: as in Kafka, unknown ids come first."""
    image = context.broker.cache.image
    if who.is_replica and not context.may(Operation.CLUSTER_ACTION, Resource.CLUSTER):
        return [], {
            key: _unknown(wanted, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
            for key, wanted in plan.wanted.items()
        }
    places: list[_Place] = []
    unknown: dict[Key, PartitionData] = {}
    without_name: dict[Key, PartitionData] = {}
    for key, wanted in plan.wanted.items():
        place = _place(key, wanted, who, context, image)
        if isinstance(place, _Place):
            places.append(place)
        elif place.error_code == ErrorCode.UNKNOWN_TOPIC_ID:
            without_name[key] = place
        else:
            unknown[key] = place
    return places, without_name | unknown


def _place(
    key: Key, wanted: FetchPartition, who: Asker, context: Context, image: MetadataImage
) -> _Place | PartitionData:
    topic = key[0]
    if not isinstance(topic, str):
        known = image.topics.by_id.get(topic)
        if known is None:
            return _unknown(wanted, ErrorCode.UNKNOWN_TOPIC_ID)
        topic = known.name
    if not who.is_replica and not context.may(Operation.READ, Resource.TOPIC, topic):
        return _unknown(wanted, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    partition: Partition | int = context.broker.partitions.find(
        topic, wanted.partition, image.topics
    )
    if partition is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
        return _unknown(wanted, partition)
    if isinstance(partition, Partition):
        if not isinstance(key[0], str) and partition.topic_id != key[0]:
            partition = ErrorCode.INCONSISTENT_TOPIC_ID
        elif context.version < _TAKES_ZSTD and partition.log.config.codec is Codec.ZSTD:
            return _unknown(wanted, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE)
    return _Place(key, wanted, topic, partition)


def _unknown(wanted: FetchPartition, error: int) -> PartitionData:
    """An error that is known before anything is read."""
    return PartitionData(
        partition_index=wanted.partition, error_code=error, high_watermark=-1, records=b""
    )


def _read_all(
    places: list[_Place], who: Asker, most: int, *, is_first: bool = True
) -> dict[Key, PartitionData]:
    found: dict[Key, PartitionData] = {}
    at_least_one = True
    for place in places:
        data = _read(place, who, most, at_least_one, is_first)
        found[place.key] = data
        size = records_size(data)
        if size:
            at_least_one = False
            most = max(0, most - size)
    return found


def _read(
    place: _Place, who: Asker, most: int, at_least_one: bool, is_first: bool
) -> PartitionData:
    partition = place.partition
    if not isinstance(partition, Partition):
        return unread(place.wanted.partition, partition)
    if partition.is_offline:
        return unread(place.wanted.partition, ErrorCode.KAFKA_STORAGE_ERROR)
    return read(
        partition, place.wanted, who, most=most, at_least_one=at_least_one, is_first=is_first
    )


class _Wait:
    """A fetch that waits for more: partitions that were appended to are looked at again, and when
    there is enough, or the time is over, all of them."""

    def __init__(
        self,
        milliseconds: int,
        least: int,
        most: int,
        places: list[_Place],
        found: dict[Key, PartitionData],
        who: Asker,
    ) -> None:
        self._seconds = milliseconds / 1000
        self._least = least
        self._most = most
        self._who = who
        self._sizes = {
            place.partition: records_size(found[place.key])
            for place in places
            if isinstance(place.partition, Partition)
        }
        self._by_partition = {place.partition: place for place in places}
        self._found = found
        self._grown: set[Partition] = set()
        self._over = False
        self._signal: asyncio.Future[None] | None = None

    def wake(self, partition: Partition) -> None:
        self._grown.add(partition)
        self._done()

    async def then(self, plan: Plan, context: Context) -> FetchResponse:
        loop = asyncio.get_running_loop()
        for partition in self._sizes:
            partition.waiting.add(self)
            if self._has_moved(partition):
                self._grown.add(partition)
        timer = loop.call_later(self._seconds, self._time_is_over)
        try:
            while not self._over:
                if not self._grown:
                    self._signal = loop.create_future()
                    await self._signal
                if self._is_enough():
                    break
        finally:
            timer.cancel()
            for partition in self._sizes:
                partition.waiting.discard(self)
        start = time.perf_counter_ns()
        places, unknown = _places(plan, self._who, context)  # some may be gone meanwhile
        found = _read_all(places, self._who, self._most, is_first=False)
        return _response(plan, {**found, **unknown}, self._who, context, start)

    def _has_moved(self, partition: Partition) -> bool:
        """Whether something has happened between the first look and the waiting."""
        data, log = self._found[self._by_partition[partition].key], partition.log
        return (
            data.high_watermark != log.high_watermark
            or data.last_stable_offset != log.last_stable_offset
            or self._who.is_replica
            or log.is_closed
        )

    def _time_is_over(self) -> None:
        self._over = True
        self._done()

    def _done(self) -> None:
        if self._signal is not None and not self._signal.done():
            self._signal.set_result(None)

    def _is_enough(self) -> bool:
        grown, self._grown = self._grown, set()
        for partition in grown:
            place = self._by_partition[partition]
            data = _read(place, self._who, self._most, True, False)
            if data.error_code or data.diverging_epoch.epoch >= 0:
                return True
            self._sizes[partition] = records_size(data)
        return sum(self._sizes.values()) >= self._least


def _response(
    plan: Plan, found: dict[Key, PartitionData], who: Asker, context: Context, start: int
) -> FetchResponse:
    if context.broker.quotas.is_enabled and not who.is_replica:
        silent = _silence(plan, found, context, start)
        if silent:
            error, id = context.broker.fetch_sessions.told_nothing(plan)
            return FetchResponse(throttle_time_ms=silent, error_code=error, session_id=id)
    error, session_id, told = context.broker.fetch_sessions.told(
        plan, found, context.version, who.is_replica
    )
    topics: list[tuple[object, list[PartitionData]]] = []
    leaders: set[int] = set()
    meters = context.broker.meters
    for key, data in told.items():
        meter = meters.of(key[0])
        meter.fetches += 1
        if who.is_replica:
            meter.replication_bytes_out += records_size(data)
        else:
            meter.bytes_out += records_size(data)
        if data.error_code:
            meter.failed_fetches += 1
            data = _for_version(key, data, leaders, context)
        if topics and topics[-1][0] == key[0]:
            topics[-1][1].append(data)
        else:
            topics.append((key[0], [data]))
    return FetchResponse(
        error_code=error,
        session_id=session_id,
        responses=tuple(
            FetchableTopicResponse(
                topic=topic if isinstance(topic, str) else "",
                topic_id=ZERO if isinstance(topic, str) else topic,  # type: ignore[arg-type]  # a Key
                partitions=tuple(partitions),
            )
            for topic, partitions in topics
        ),
        node_endpoints=() if who.is_replica else _endpoints(leaders, context),
    )


def _silence(plan: Plan, found: dict[Key, PartitionData], context: Context, start: int) -> int:
    """For how many ms the client has to be silent instead of getting what was found."""
    told = context.broker.fetch_sessions.news(plan, found)
    without = FetchResponse(
        responses=tuple(
            FetchableTopicResponse(
                topic=key[0] if isinstance(key[0], str) else "",
                partitions=(msgspec.structs.replace(data, records=b""),),
            )
            for key, data in told.items()
        )
    )
    size = 4 + len(encode(without, context.version)) + sum(map(records_size, told.values()))
    return context.broker.quotas.fetched(context, size, time.perf_counter_ns() - start)


def _for_version(
    key: Key, data: PartitionData, leaders: set[int], context: Context
) -> PartitionData:
    """An error as this version of the protocol tells it."""
    error = data.error_code
    if error == ErrorCode.KAFKA_STORAGE_ERROR and context.version < _KNOWS_STORAGE_ERROR:
        return msgspec.structs.replace(data, error_code=ErrorCode.NOT_LEADER_OR_FOLLOWER)
    if context.version < _TELLS_LEADER or error not in (
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.FENCED_LEADER_EPOCH,
    ):
        return data
    image = context.broker.cache.image
    topic = key[0] if isinstance(key[0], str) else image.topics.by_id[key[0]].name
    leader, epoch = current_leader(image, topic, key[1])
    leaders.add(leader)
    return msgspec.structs.replace(
        data, current_leader=LeaderIdAndEpoch(leader_id=leader, leader_epoch=epoch)
    )


def _endpoints(leaders: set[int], context: Context) -> tuple[NodeEndpoint, ...]:
    image = context.broker.cache.image
    told = []
    for leader in sorted(leaders):
        at = endpoint(image, leader, context.listener)
        if at is not None:
            where, rack = at
            told.append(NodeEndpoint(node_id=leader, host=where.host, port=where.port, rack=rack))
    return tuple(told)
