"""What holds for a topic: its own configs over those of brokers, and which may be set.

For a key that a topic does not set, the first of these that is there counts: what was set while
running for the controller's own node, then for all brokers, what its file says, Kafka's default.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

import msgspec

from kraftline.config.effective import Config, once
from kraftline.config.key import Key, Value
from kraftline.config.tables import TOPIC as KEYS
from kraftline.config.values import BadConfig, parse
from kraftline.controller.java_order import in_string_order
from kraftline.controller.refusal import Refusal
from kraftline.metadata.image import MetadataImage
from kraftline.metadata.image.configs import BROKER, TOPIC
from kraftline.schema.api.error_codes import ErrorCode

MIN_ISR: Final = "min.insync.replicas"
UNCLEAN: Final = "unclean.leader.election.enable"
_REMOTE: Final = "remote.storage.enable"

# The order in which Kafka looks at them: of several that are wrong, the first is told.
LOOKED_AT: Final = (
    *("segment.bytes", "segment.ms", "segment.jitter.ms", "segment.index.bytes"),
    *("flush.messages", "flush.ms", "retention.bytes", "retention.ms", "max.message.bytes"),
    *("index.interval.bytes", "delete.retention.ms", "min.compaction.lag.ms"),
    *("max.compaction.lag.ms", "file.delete.delay.ms", "min.cleanable.dirty.ratio"),
    *("cleanup.policy", UNCLEAN, MIN_ISR, "compression.type", "compression.gzip.level"),
    *("compression.lz4.level", "compression.zstd.level", "preallocate"),
    *("message.timestamp.type", "message.timestamp.before.max.ms"),
    *("message.timestamp.after.max.ms", "leader.replication.throttled.replicas"),
    *("follower.replication.throttled.replicas", _REMOTE, "local.retention.ms"),
    *("local.retention.bytes", "remote.log.copy.disable", "remote.log.delete.on.disable"),
    "internal.segment.bytes",
)

# Where a value comes from, by the numbers of the protocol.
OF_TOPIC: Final = 1
OF_BROKER: Final = 2
OF_ALL_BROKERS: Final = 3
OF_FILE: Final = 4
DEFAULT: Final = 5


class Effective(msgspec.Struct, frozen=True, gc=False):
    name: str
    value: str | None
    source: int


class TopicConfigs(msgspec.Struct, frozen=True):
    """`config` is what the controller's node was started with."""

    config: Config
    node_id: int

    def min_isr(self, image: MetadataImage, topic: str) -> int:
        found = self._of(image, topic, MIN_ISR)
        return int(found.value or "1")

    def unclean_elections(self, image: MetadataImage, topic: str) -> bool:
        found = self._of(image, topic, UNCLEAN)
        return (found.value or "").strip().lower() == "true"

    def _of(self, image: MetadataImage, topic: str, name: str) -> Effective:
        return self._effective(image, image.configs.of(TOPIC, topic), KEYS[name])

    def effective(self, image: MetadataImage, given: Mapping[str, str]) -> Iterator[Effective]:
        """All configs of a topic that is given these, by name; Kafka's internal ones only where
        they were given."""
        for _, key in sorted(KEYS.items()):
            found = self._effective(image, given, key)
            if not key.internal or found.source != DEFAULT:
                yield found

    def _effective(self, image: MetadataImage, given: Mapping[str, str], key: Key) -> Effective:
        if key.name in given:
            return Effective(key.name, given[key.name], OF_TOPIC)
        running = (
            (OF_BROKER, image.configs.of(BROKER, str(self.node_id))),
            (OF_ALL_BROKERS, image.configs.of(BROKER, "")),
        )
        for source, values in running:
            for synonym, factor in key.synonyms.items():
                if synonym in values:
                    return Effective(key.name, _converted(values[synonym], factor), source)
        for synonym, factor in key.synonyms.items():
            if self.config.is_given(synonym):
                text = _text(self.config[synonym])
                return Effective(key.name, _converted(text, factor), OF_FILE)
        return Effective(key.name, key.default, DEFAULT)

    def check(self, given: Mapping[str, str]) -> None:
        """Refusal, in Kafka's words, of configs that a topic cannot have."""
        for name in in_string_order(given):
            if name not in KEYS:
                raise _invalid(f"Unknown topic config name: {name}")
        values: dict[str, Value] = {}
        for name in LOOKED_AT:
            key = KEYS[name]
            if name in given:
                try:
                    values[name] = parse(key, once(key, given[name]))
                except BadConfig as problem:
                    raise _invalid(str(problem)) from None
            else:
                values[name] = self.config.topic_default(name).value
        self._check_together(given, values)

    def _check_together(self, given: Mapping[str, str], values: Mapping[str, Value]) -> None:
        least, most = values["min.compaction.lag.ms"], values["max.compaction.lag.ms"]
        assert isinstance(least, int)
        assert isinstance(most, int)
        if least > most:
            raise _invalid(
                f"conflict topic config setting min.compaction.lag.ms ({least}) > "
                f"max.compaction.lag.ms ({most})"
            )
        if given and values[_REMOTE] is True:
            raise _invalid(
                "Tiered Storage functionality is disabled in the broker. Topic cannot be "
                "configured with remote log storage."
            )


def _invalid(message: str) -> Refusal:
    return Refusal(ErrorCode.INVALID_CONFIG, message)


def _converted(text: str, factor: int) -> str:
    """A value of another unit, as Kafka converts it: negative ones mean no limit in any unit."""
    if factor == 1:
        return text
    number = int(text)
    return str(number * factor if number >= 0 else number)


def _text(value: Value) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list):
        return ",".join(value)
    return "" if value is None else str(value)
