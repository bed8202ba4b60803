"""The configuration that a node runs with: a file, what was given over it, and Kafka's defaults.

Every value knows where it came from. Keys that Kafka does not know are kept (plugins read their
own) and named with the nearest known one: a typing mistake should not go unseen.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from pathlib import Path

import javaproperties
import msgspec

from kraftline.config.key import Key, Type, Value
from kraftline.config.tables import BROKER, TOPIC
from kraftline.config.values import BadConfig, default_of, parse
from kraftline.errors import KraftlineError

HIDDEN = "[hidden]"
DEFAULT = "default"


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
        self._given: dict[str, Setting] = {}
        self.unknown: dict[str, str] = {}
        for name, (text, source) in given.items():
            key = BROKER.get(name)
            if key is None:
                self.unknown[name] = text
            else:
                self._given[name] = Setting(name, parse(key, text), source)
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
            yield f"{name} is not a key of Kafka's{suggestion(name, BROKER)}"


def suggestion(name: str, keys: Mapping[str, Key]) -> str:
    near = difflib.get_close_matches(name, keys, n=1, cutoff=0.75)
    return f"; did you mean {near[0]}?" if near else ""


def read_config(
    file: Path | None, overrides: Mapping[str, str] | None = None, **standing: str
) -> Config:
    """`standing` are values that count where neither file nor overrides have one (underscores for
    dots)."""
    given = {name.replace("_", "."): (text, "standalone") for name, text in standing.items()}
    if file is not None:
        try:
            with file.open("rb") as stream:
                properties = javaproperties.load(stream)
        except OSError as problem:
            raise KraftlineError(f"{file}: {problem.strerror}") from None
        except (ValueError, javaproperties.InvalidUEscapeError) as problem:
            raise KraftlineError(f"{file} is not a properties file: {problem}") from None
        given |= {name: (text, str(file)) for name, text in properties.items()}
    given |= {name: (text, "override") for name, text in (overrides or {}).items()}
    return Config(given)
