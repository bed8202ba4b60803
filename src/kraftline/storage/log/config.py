"""How a partition's log is kept: the topic configs that concern a log, by Kafka's names."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Final

import msgspec

from kraftline.config.effective import Config, once
from kraftline.config.key import Key, Value
from kraftline.config.tables import BROKER, TOPIC
from kraftline.config.values import BadConfig, default_of, parse
from kraftline.records.record import Codec

_logger = logging.getLogger(__name__)
_NEVER: Final = 2**63 - 1
_CODECS: Final = {
    "producer": None,
    "uncompressed": Codec.NONE,
    "gzip": Codec.GZIP,
    "snappy": Codec.SNAPPY,
    "lz4": Codec.LZ4,
    "zstd": Codec.ZSTD,
}


class LogConfig(msgspec.Struct, frozen=True, kw_only=True):
    """Sizes in bytes, times in milliseconds; a negative retention means no limit.

    `codec` is None where batches stay as the producer compressed them, `level` is that codec's.
    """

    segment_bytes: int = 1024 * 1024 * 1024
    segment_ms: int = 7 * 24 * 3_600_000
    segment_jitter_ms: int = 0
    segment_index_bytes: int = 10 * 1024 * 1024
    index_interval_bytes: int = 4096
    flush_messages: int = _NEVER
    flush_ms: int = _NEVER
    retention_bytes: int = -1
    retention_ms: int = 7 * 24 * 3_600_000
    file_delete_delay_ms: int = 60_000
    max_message_bytes: int = 1_048_588
    compact: bool = False
    delete: bool = True
    min_cleanable_dirty_ratio: float = 0.5
    min_compaction_lag_ms: int = 0
    max_compaction_lag_ms: int = _NEVER
    delete_retention_ms: int = 24 * 3_600_000
    codec: Codec | None = None
    level: int | None = None
    log_append_time: bool = False
    timestamp_before_max_ms: int = _NEVER
    timestamp_after_max_ms: int = 3_600_000
    preallocate: bool = False
    min_insync_replicas: int = 1


def log_config(
    overrides: Mapping[str, str] | None = None,
    broker: Config | None = None,
    dynamic: Mapping[str, str] | None = None,
) -> LogConfig:
    """The config of a topic: what it sets itself, then the broker's defaults, then Kafka's.
    `dynamic` are those of the broker that the metadata has; they count more than its file.

    A value that no release of today would take (it may be from another) counts as not set, with a
    line in the log: one topic must not keep a node from its others. Most topics set nothing:
    equal configs are one object.
    """
    return _log_config(_frozen(overrides), broker, _frozen(dynamic))


def _frozen(keys: Mapping[str, str] | None) -> tuple[tuple[str, str], ...]:
    return tuple(sorted(keys.items())) if keys else ()


@lru_cache(1024)
def _log_config(
    overrides: tuple[tuple[str, str], ...],
    broker: Config | None,
    dynamic: tuple[tuple[str, str], ...],
) -> LogConfig:
    given, of_broker = dict(overrides), dict(dynamic)

    def value(name: str) -> Value:
        if name in given and _is_sound(TOPIC[name], given[name]):
            return parse(TOPIC[name], once(TOPIC[name], given[name]))
        for synonym, factor in TOPIC[name].synonyms.items():
            if synonym in of_broker and _is_sound(BROKER[synonym], of_broker[synonym]):
                found = parse(BROKER[synonym], once(BROKER[synonym], of_broker[synonym]))
                if factor != 1 and isinstance(found, int) and found >= 0:
                    found *= factor
                return found
            if broker is not None and broker.is_given(synonym):
                break
        return default_of(TOPIC[name]) if broker is None else broker.topic_default(name).value

    def whole(name: str) -> int:
        found = value(name)
        assert isinstance(found, int), name
        return found

    policy = value("cleanup.policy")
    assert isinstance(policy, list)
    codec = _CODECS[str(value("compression.type"))]
    internal_segment = value("internal.segment.bytes")
    flush_ms = value("flush.ms")
    dirty_ratio = value("min.cleanable.dirty.ratio")
    assert isinstance(dirty_ratio, float)
    return LogConfig(
        segment_bytes=(
            internal_segment if isinstance(internal_segment, int) else whole("segment.bytes")
        ),
        segment_ms=whole("segment.ms"),
        segment_jitter_ms=whole("segment.jitter.ms"),
        segment_index_bytes=whole("segment.index.bytes"),
        index_interval_bytes=whole("index.interval.bytes"),
        flush_messages=whole("flush.messages"),
        flush_ms=flush_ms if isinstance(flush_ms, int) else _NEVER,
        retention_bytes=whole("retention.bytes"),
        retention_ms=whole("retention.ms"),
        file_delete_delay_ms=whole("file.delete.delay.ms"),
        max_message_bytes=whole("max.message.bytes"),
        compact="compact" in policy,
        delete="delete" in policy,
        min_cleanable_dirty_ratio=dirty_ratio,
        min_compaction_lag_ms=whole("min.compaction.lag.ms"),
        max_compaction_lag_ms=whole("max.compaction.lag.ms"),
        delete_retention_ms=whole("delete.retention.ms"),
        codec=codec,
        level=_level(codec, whole),
        log_append_time=value("message.timestamp.type") == "LogAppendTime",
        timestamp_before_max_ms=whole("message.timestamp.before.max.ms"),
        timestamp_after_max_ms=whole("message.timestamp.after.max.ms"),
        preallocate=bool(value("preallocate")),
        min_insync_replicas=whole("min.insync.replicas"),
    )


def _is_sound(key: Key, text: str) -> bool:
    try:
        parse(key, once(key, text))
    except BadConfig as problem:
        _logger.warning("%s; it counts as not set", problem)
        return False
    return True


def _level(codec: Codec | None, whole: Callable[[str], int]) -> int | None:
    match codec:
        case Codec.GZIP:
            return whole("compression.gzip.level")
        case Codec.ZSTD:
            return whole("compression.zstd.level")
        case _:
            return None
