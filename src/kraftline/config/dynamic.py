"""A broker's keys that change while it runs: which, for one broker or for all, and what becomes of
the configuration that it was started with.

What a broker was given for itself counts more than what all were given, and that more than its
file. A key that says the same in another unit (`log.roll.hours`) gives way to one that was set
while running.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Final

from kraftline.config.effective import Config, once
from kraftline.config.key import Key, Type
from kraftline.config.tables import BROKER
from kraftline.config.values import BadConfig, parse

PER_BROKER: Final = "per-broker"
READ_ONLY: Final = "read-only"
RUNNING: Final = "set while running"

_OF_LISTENER: Final = re.compile(r"listener\.name\.[^.]*\.(.*)")
# Of settings that may be one mechanism's: `listener.name.NAME.MECHANISM.KEY`.
_OF_MECHANISM: Final = (
    *("sasl.jaas.config", "sasl.login.callback.handler.class", "sasl.login.class"),
    *("sasl.server.callback.handler.class", "connections.max.reauth.ms"),
)
# The same setting in several units, the one that counts most first.
_SAME: Final = (
    ("log.roll.ms", "log.roll.hours"),
    ("log.roll.jitter.ms", "log.roll.jitter.hours"),
    ("log.retention.ms", "log.retention.minutes", "log.retention.hours"),
)
_FLUSH: Final = ("log.flush.interval.ms", "log.flush.scheduler.interval.ms")
# Stores of keys and certificates: only with a listener's prefix.
_STORES: Final = re.compile(r"ssl\.(keystore\..*|truststore\..*|key\.password)")
# All brokers may be given these of a listener.
_OF_ALL_LISTENERS: Final = frozenset(
    {"max.connections", "max.connection.creation.rate", "num.network.threads"}
)
_NO_LIMIT: Final = str(2**63 - 1)
# They are in no file: there is no other way to set them.
ONLY_RUNNING: Final[Mapping[str, Key]] = {
    name: Key(name, Type.LONG, default=_NO_LIMIT, least=0, update="cluster-wide")
    for name in (
        "leader.replication.throttled.rate",
        "follower.replication.throttled.rate",
        "replica.alter.log.dirs.io.max.bytes.per.second",
    )
}


class NotDynamic(BadConfig):
    """Keys that cannot change in this way."""

    def __init__(self, what: str, names: Iterable[str]) -> None:
        self.names = tuple(names)
        super().__init__(self.names[0], "", "")
        self.args = (f"{what}: [{', '.join(self.names)}]",)


@lru_cache(4096)
def synonyms(name: str, *, of_listener: bool = True) -> tuple[str, ...]:
    """The keys that a setting may be written under, a listener's own before that of all."""
    for group in _SAME:
        if name in group:
            return group
    if name == _FLUSH[0]:
        return _FLUSH
    found = _OF_LISTENER.fullmatch(name)
    if found is None or not of_listener:
        return (name,)
    base = found[1]
    return name, next((each for each in _OF_MECHANISM if base.endswith(each)), base)


def key_of(name: str) -> Key | None:
    """What is known of a key, be it one that only a running broker takes or a listener's own."""
    found = BROKER.get(name)
    if found is not None:
        return found
    for each in synonyms(name):
        found = BROKER.get(each) or ONLY_RUNNING.get(each)
        if found is not None:
            return found
    return None


def is_read_only(name: str) -> bool:
    """As Kafka tells it: what it does not know by name is."""
    found = BROKER.get(name)
    return found is None or found.update == READ_ONLY


def sound(given: Mapping[str, str], *, of_all: bool) -> dict[str, str]:
    """Those that a broker heeds: a key that is not dynamic, or a value that is no value, says
    nothing to it."""
    return {
        name: text
        for name, text in given.items()
        if not _is_fixed(name)
        and _STORES.fullmatch(name) is None
        and not (of_all and _is_per_broker(name))
        and _is_value(name, text)
    }


def overlaid(started: Config, of_all: Mapping[str, str], own: Mapping[str, str]) -> Config:
    """The configuration with what was set while running; both must be sound."""
    if not of_all and not own:
        return started
    given = dict(started.given)
    for changes in (of_all, own):
        for name, text in changes.items():
            for each in synonyms(name, of_listener=False):
                given.pop(each, None)
            given[name] = (text, RUNNING)
    return Config(given)


def check_names(given: Iterable[str]) -> None:
    """NotDynamic, of the first rule that is broken."""
    names = list(given)
    fixed = [name for name in names if _is_fixed(name)]
    if fixed:
        raise NotDynamic("Cannot update these configs dynamically", fixed)
    stores = [name for name in names if _STORES.fullmatch(name)]
    if stores:
        raise NotDynamic(
            "These security configs can be dynamically updated only per-listener using the "
            "listener prefix",
            stores,
        )


def check_values(given: Mapping[str, str], *, of_all: bool) -> None:
    """BadConfig of the first value that is none, then of keys that are only one broker's."""
    for key, text in _typed(given):
        parse(key, once(key, text))
    own = [name for name in given if of_all and _is_per_broker(name)]
    if own:
        raise NotDynamic(
            "Cannot update these configs at default cluster level, broker id must be specified",
            own,
        )


def _typed(given: Mapping[str, str]) -> Iterator[tuple[Key, str]]:
    for name, text in given.items():
        found = _OF_LISTENER.fullmatch(name)
        base = name if found is None else found[1]
        key = ONLY_RUNNING.get(base) or BROKER.get(base)
        if key is not None and key.update != READ_ONLY:
            yield key, text


def _is_value(name: str, text: str) -> bool:
    try:
        for key, _ in _typed({name: text}):
            parse(key, once(key, text))
    except BadConfig:
        return False
    return True


def _is_fixed(name: str) -> bool:
    found = BROKER.get(name)
    return found is not None and found.update == READ_ONLY


def _is_per_broker(name: str) -> bool:
    found = _OF_LISTENER.fullmatch(name)
    if found is not None:
        return found[1] not in _OF_ALL_LISTENERS
    key = BROKER.get(name)
    return key is not None and key.update == PER_BROKER
