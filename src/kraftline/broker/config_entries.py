"""Configs as a client is told of them: value, source, type, and where else a value might come from.

The synonyms of an entry are all values that there are for it, the one that counts first: of the
resource itself, set while running for this broker, for all brokers, in its file, Kafka's default.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final

from kraftline.config.dynamic import is_read_only, key_of, synonyms
from kraftline.config.effective import Config, once
from kraftline.config.key import Key, Type, Value
from kraftline.config.tables import BROKER, CLIENT_METRICS, GROUP, TOPIC
from kraftline.config.values import parse
from kraftline.config.words import explained, text_of
from kraftline.controller.broker_configs import BrokerConfigs
from kraftline.controller.config_rules import group_default
from kraftline.metadata.image import MetadataImage
from kraftline.schema.api.describe_configs import (
    DescribeConfigsResourceResult,
    DescribeConfigsSynonym,
)

# Where a value comes from, by the numbers of the protocol.
OF_TOPIC, OF_BROKER, OF_ALL_BROKERS, OF_FILE, DEFAULT = range(1, 6)
OF_CLIENT_METRICS, OF_GROUP = 7, 8
_TYPES: Final = {
    Type.BOOLEAN: 1,
    Type.STRING: 2,
    Type.INT: 3,
    Type.SHORT: 4,
    Type.LONG: 5,
    Type.DOUBLE: 6,
    Type.LIST: 7,
    Type.CLASS: 8,
    Type.PASSWORD: 9,
}
_DEFAULTS: Final[Mapping[str, str | None]] = {name: key.default for name, key in BROKER.items()}
Entries = Iterator[DescribeConfigsResourceResult]


class ConfigEntries:
    """Of one request: the configs of one image, for those who asked for synonyms and words."""

    def __init__(
        self,
        image: MetadataImage,
        configs: BrokerConfigs,
        *,
        with_synonyms: bool,
        with_words: bool,
    ) -> None:
        started = configs.started
        self._of_all, self._own = configs.dynamic(image)
        self._running = configs.running(image)
        self._file = {name: text for name, (text, _) in started.given.items()}
        # Either of the two names of a node's id stands for both.
        for one, other in (("node.id", "broker.id"), ("broker.id", "node.id")):
            if one in self._file:
                self._file.setdefault(other, self._file[one])
        self._sources: tuple[tuple[Mapping[str, str | None], int], ...] = (
            (dict(self._own), OF_BROKER),
            (dict(self._of_all), OF_ALL_BROKERS),
            (dict(self._file), OF_FILE),
            (_DEFAULTS, DEFAULT),
        )
        self._with_synonyms = with_synonyms
        self._with_words = with_words

    def of_topic(self, given: Mapping[str, str], wanted: Wanted) -> Entries:
        for name in _names(TOPIC, given, wanted):
            key = TOPIC.get(name)
            value = self._topic_value(key, given) if key is not None else None
            found: list[DescribeConfigsSynonym] = []
            if name in given:
                found.append(_synonym(name, None if key is None else value, OF_TOPIC))
            if key is not None:
                found += [each for first in list(key.synonyms)[:1] for each in self._chain(first)]
            yield self._entry(name, key, value, found)

    def _topic_value(self, key: Key, given: Mapping[str, str]) -> str | None:
        if key.name in given:
            return text_of(parse(key, once(key, given[key.name])))
        return text_of(self._running.topic_default(key.name).value)

    def of_group(self, given: Mapping[str, str], wanted: Wanted) -> Entries:
        for name in _names(GROUP, given, wanted):
            key = GROUP.get(name)
            if key is None:
                yield self._entry(name, None, None, [_synonym(name, None, OF_GROUP)])
                continue
            found: list[DescribeConfigsSynonym] = []
            if name in given:
                value = text_of(parse(key, once(key, given[name])))
                found.append(_synonym(name, value, OF_GROUP))
            else:
                value = text_of(group_default(key, self._running))
            found += [each for first in key.synonyms for each in self._chain(first)]
            if not key.synonyms:
                found.append(_synonym(name, key.default, DEFAULT))
            yield self._entry(name, key, value, found)

    def of_client_metrics(self, given: Mapping[str, str], wanted: Wanted) -> Entries:
        for name in _names(CLIENT_METRICS, given, wanted):
            key = CLIENT_METRICS.get(name)
            if name in given:
                value = given[name] if key is None else text_of(parse(key, once(key, given[name])))
                yield self._entry(name, key, value, [_synonym(name, value, OF_CLIENT_METRICS)])
            elif key is not None:
                yield self._entry(name, key, key.default, [])

    def of_broker(self, wanted: Wanted) -> Entries:
        running = self._running
        for name in _names(BROKER, dict.fromkeys(running.given, ""), wanted):
            key = key_of(name)
            if name in BROKER:
                value = text_of(_value(running, name, self._file))
            else:
                value = running.given[name][0]
            yield self._broker_entry(name, key, value, list(self._chain(name)))

    def of_all_brokers(self, wanted: Wanted) -> Entries:
        for name in sorted(self._of_all):
            if wanted(name):
                found = [each for each in self._chain(name) if each.source == OF_ALL_BROKERS]
                yield self._broker_entry(name, key_of(name), self._of_all[name], found)

    def _broker_entry(
        self, name: str, key: Key | None, value: str | None, found: list[DescribeConfigsSynonym]
    ) -> DescribeConfigsResourceResult:
        return self._entry(name, key, value, found, read_only=is_read_only(name))

    def _chain(self, name: str) -> Iterator[DescribeConfigsSynonym]:
        """Every value of a broker's key, the one that counts first; what is said under another
        name only behind what is said under this one."""
        names = synonyms(name)
        is_hidden = _is_sensitive(key_of(name))
        has_begun = False
        for values, source in self._sources:
            for each in names:
                text = values.get(each)
                if text is not None:
                    has_begun = has_begun or each == name
                    if has_begun:
                        yield _synonym(each, None if is_hidden else text, source)

    def _entry(
        self,
        name: str,
        key: Key | None,
        value: str | None,
        found: list[DescribeConfigsSynonym],
        *,
        read_only: bool = False,
    ) -> DescribeConfigsResourceResult:
        is_hidden = _is_sensitive(key)
        return DescribeConfigsResourceResult(
            name=name,
            value=None if is_hidden else value,
            read_only=read_only,
            config_source=found[0].source if found else DEFAULT,
            is_sensitive=is_hidden,
            synonyms=tuple(found) if self._with_synonyms else (),
            config_type=0 if key is None else _TYPES[key.type],
            documentation=explained(key) if self._with_words and key is not None else None,
        )


Wanted = Callable[[str], bool]


def _names(known: Mapping[str, Key], given: Mapping[str, str], wanted: Wanted) -> Iterable[str]:
    """Kafka's internal keys only where they were given."""
    return sorted(
        name
        for name in {*known, *given}
        if wanted(name) and (name in given or not known[name].internal)
    )


def _value(running: Config, name: str, file: Mapping[str, str]) -> Value:
    # The two names of a node's id.
    if name in ("broker.id", "node.id") and not running.is_given(name) and name in file:
        return int(file[name])
    return running[name]


def _is_sensitive(key: Key | None) -> bool:
    """What nobody knows might be a secret."""
    return key is None or key.type is Type.PASSWORD


def _synonym(name: str, value: str | None, source: int) -> DescribeConfigsSynonym:
    return DescribeConfigsSynonym(name=name, value=value, source=source)
