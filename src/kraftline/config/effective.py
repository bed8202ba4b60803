"""The configuration that a node runs with: a file, what was given over it, and Kafka's defaults.

Every value knows where it came from. Keys that Kafka does not know are kept (plugins read their
own) and named with the nearest known one: a typing mistake should not go unseen.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

import msgspec

from kraftline.config.key import Key, Type, Value
from kraftline.config.properties import read_properties
from kraftline.config.tables import BROKER, TOPIC
from kraftline.config.values import BadConfig, default_of, parse
from kraftline.errors import KraftlineError, NotKafka

HIDDEN = "[hidden]"
DEFAULT = "default"
OVERRIDE = "override"
STANDALONE = "standalone"
# A listener may have settings of its own under this prefix.
_OF_LISTENER: Final = "listener.name."
# Not the broker's own, but of plugins that are built in.
_OF_PLUGINS: Final = frozenset({"super.users", "allow.everyone.if.no.acl.found"})
# Where a node serves metrics: of our own making, as the prefix says.
METRICS_LISTENER: Final = "kraftline.metrics.listener"
# Spellings that Kafka takes for one another, the newer first.
_SAME: Final = (("node.id", "broker.id"),)


class Setting(msgspec.Struct, frozen=True):
    """A value and its source: a file, an override, or Kafka's default."""

    name: str
    value: Value
    source: str

    @property
    def text(self) -> str:
        """For people: secrets stay secret."""
        if BROKER[self.name].type is Type.PASSWORD and self.value is not None:
            return HIDDEN
        if isinstance(self.value, bool):
            return str(self.value).lower()
        if isinstance(self.value, list):
            return ",".join(self.value)
        return "" if self.value is None else str(self.value)


class Config:
    """A node's configuration; `config["log.dirs"]` gives the value."""

    def __init__(self, given: Mapping[str, tuple[str, str]]) -> None:
        """`given` is name: (text, source)."""
        # As it was written, with the keys that Kafka does not know.
        self.given: Mapping[str, tuple[str, str]] = dict(given)
        self._given: dict[str, Setting] = {}
        self.unknown: dict[str, str] = {}
        for name, (text, source) in _both(given).items():
            key = BROKER.get(name)
            if key is None:
                self.unknown[name] = text
            else:
                self._given[name] = Setting(name, parse(key, once(key, text)), source)
        for key in BROKER.values():
            if key.required and key.name not in self._given:
                raise BadConfig.said(
                    key.name,
                    f'Missing required configuration "{key.name}" which has no default value.',
                )

    def __getitem__(self, name: str) -> Value:
        return self.setting(name).value

    def is_given(self, name: str) -> bool:
        return name in self._given

    def setting(self, name: str) -> Setting:
        found = self._given.get(name)
        return Setting(name, default_of(BROKER[name]), DEFAULT) if found is None else found

    def settings(self) -> Iterator[Setting]:
        """All of them, by name; Kafka's internal ones only where they were given."""
        for name, key in sorted(BROKER.items()):
            if name in self._given or not key.internal:
                yield self.setting(name)

    def whole(self, name: str) -> int:
        value = self[name]
        assert isinstance(value, int), name
        return value

    def text(self, name: str) -> str:
        value = self[name]
        assert isinstance(value, str), name
        return value

    def texts(self, name: str) -> list[str]:
        value = self[name]
        assert isinstance(value, list), name
        return value

    def topic_default(self, name: str) -> Setting:
        """What a topic's key is where the topic does not set it: the broker's synonyms in their
        order, then Kafka's default."""
        key = TOPIC[name]
        for synonym, factor in key.synonyms.items():
            found = self._given.get(synonym)
            if found is None:
                continue
            value = found.value
            if factor != 1 and isinstance(value, int) and value >= 0:
                value *= factor
            return Setting(name, value, found.source)
        return Setting(name, default_of(key), DEFAULT)

    def remarks(self) -> Iterator[str]:
        """A line for each key that Kafka does not know."""
        for name in self.unknown:
            if not self._is_of_listener(name) and name not in {*_OF_PLUGINS, METRICS_LISTENER}:
                yield f"{name} is not a key of Kafka's{suggestion(name, BROKER)}"

    def of_listener(self, listener: str, name: str) -> Value:
        """A setting as one listener has it: its own (`listener.name.NAME.KEY`), or all the same."""
        own = f"{_OF_LISTENER}{listener.lower()}.{name}"
        text = self.unknown.get(own)
        return self[name] if text is None else parse(BROKER[name], text)

    def _is_of_listener(self, name: str) -> bool:
        rest = name.removeprefix(_OF_LISTENER).partition(".")[2]
        return name.startswith(_OF_LISTENER) and _without_mechanism(rest) in BROKER


def _both(given: Mapping[str, tuple[str, str]]) -> Mapping[str, tuple[str, str]]:
    """An old spelling stands for the new one where only the old one is there."""
    return dict(given) | {
        new: given[old] for new, old in _SAME if old in given and new not in given
    }


def once(key: Key, text: str) -> str:
    """Kafka drops what a list has twice before it looks whether something is there twice."""
    if not key.is_set or "," not in text:
        return text
    values = dict.fromkeys(each.strip() for each in text.split(","))
    if values == {"": None}:
        raise BadConfig.said(key.name, f"Configuration '{key.name}' values must not be empty.")
    return ",".join(values)


def _without_mechanism(name: str) -> str:
    """Settings of SASL may be one mechanism's: `plain.sasl.jaas.config`."""
    at = name.find("sasl.")
    return name[at:] if at > 0 else name


def suggestion(name: str, keys: Iterable[str]) -> str:
    import difflib  # only for those who mistype

    near = difflib.get_close_matches(name, list(keys), n=1, cutoff=0.75)
    return f"; did you mean {near[0]}?" if near else ""


def read_config(
    file: str | os.PathLike[str] | None,
    overrides: Mapping[str, str] | None = None,
    standing: Mapping[str, str] | None = None,
) -> Config:
    """`standing` are values that count where neither file nor overrides have one."""
    given = {name: (text, STANDALONE) for name, text in (standing or {}).items()}
    if file is not None:
        given |= {name: (text, str(file)) for name, text in _read_file(file).items()}
    given |= {name: (text, OVERRIDE) for name, text in (overrides or {}).items()}
    return Config(given)


def _read_file(file: str | os.PathLike[str]) -> dict[str, str]:
    try:
        with open(file, "rb") as stream:
            return read_properties(stream.read())
    except FileNotFoundError:
        raise NotKafka(f"{file}: there is no such file or directory") from None
    except OSError as problem:
        raise NotKafka(f"{file}: cannot be read: {problem.strerror}") from None
    except ValueError as problem:
        raise KraftlineError(f"{file} is not a properties file: {problem}") from None
