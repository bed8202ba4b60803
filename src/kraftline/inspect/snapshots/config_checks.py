"""Whether Kafka would take a config. A controller asks before it writes one; what comes in a
snapshot is there, whether a broker can read it or not."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from kraftline.config import tables
from kraftline.config.dynamic import key_of
from kraftline.config.effective import once, suggestion
from kraftline.config.key import Key
from kraftline.config.values import BadConfig, parse
from kraftline.inspect.snapshots.edits import RESOURCES, SetConfig
from kraftline.metadata.image.configs import BROKER, TOPIC

_TABLES: Final[Mapping[int, Mapping[str, Key]]] = {
    TOPIC: tables.TOPIC,
    BROKER: tables.BROKER,
    RESOURCES["client-metrics"]: tables.CLIENT_METRICS,
    RESOURCES["group"]: tables.GROUP,
}


def bad_value(edit: SetConfig) -> str | None:
    """What is wrong with the value, in Kafka's words."""
    key = _key(edit)
    if key is None or edit.value is None:
        return None
    try:
        parse(key, once(key, edit.value))
    except BadConfig as error:
        return str(error)
    return None


def unknown_key(edit: SetConfig) -> str | None:
    """A doubt, not a refusal: other releases and plug-ins have keys of their own."""
    if _key(edit) is not None or edit.value is None:
        return None
    kind = next(name for name, number in RESOURCES.items() if number == edit.resource.type)
    near = suggestion(edit.key, _TABLES[edit.resource.type])
    return f"{edit.key} is no {kind} config of Kafka {tables.KAFKA}, which passes it over{near}"


def _key(edit: SetConfig) -> Key | None:
    if edit.resource.type == BROKER:
        return key_of(edit.key)
    return _TABLES[edit.resource.type].get(edit.key)
