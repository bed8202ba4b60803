"""What two answers say differently."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, TypeAlias

from kraftline.schema.types import Message

# A field is named by its class and itself, or by itself alone where it is the same everywhere.
Field: TypeAlias = str
Normal: TypeAlias = Callable[[Any], Any]


def _anything(value: Any) -> str:
    """Only whether it is there: ids and times differ from run to run."""
    return "none" if value in (None, "", -1, bytes(16)) else "some"


def by(*names: str) -> Normal:
    """A list in the order of these fields: Kafka keeps it in a map and gives it in no order."""
    return lambda items: sorted(items, key=lambda item: tuple(getattr(item, n) for n in names))


NORMAL: Final[dict[Field, Normal]] = {
    "throttle_time_ms": lambda value: 0,
    "MetadataResponse.brokers": by("node_id"),
    "MetadataResponse.topics": lambda topics: sorted(
        topics, key=lambda topic: (topic.name or "", topic.topic_id)
    ),
    "MetadataResponse.controller_id": _anything,
    "DescribeClusterResponse.brokers": by("broker_id"),
    "DescribeClusterResponse.controller_id": _anything,
    "ProduceResponse.responses": by("name"),
    "TopicProduceResponse.partition_responses": by("index"),
    "ApiVersionsResponse.supported_features": by("name"),
    "ApiVersionsResponse.finalized_features": by("name"),
}
# Besides these where two nodes with metadata and ports of their own are compared.
FREE: Final[dict[Field, Normal]] = {
    "topic_id": _anything,
    "port": _anything,
    "ApiVersionsResponse.finalized_features_epoch": _anything,
}


def differences(
    ours: Message, kafkas: Message, normal: Mapping[Field, Normal] | None = None
) -> list[str]:
    """A line for each field that differs, with where it is."""
    return list(_differences(ours, kafkas, {**NORMAL, **(normal or {})}, type(kafkas).__name__))


def _differences(ours: Any, kafkas: Any, normal: dict[Field, Normal], at: str) -> Iterator[str]:
    if type(ours) is not type(kafkas):
        yield f"{at}: we say {ours!r}, Kafka {kafkas!r}"
    elif isinstance(kafkas, Message):
        for name in kafkas.__struct_fields__:
            one, other = getattr(ours, name), getattr(kafkas, name)
            make = normal.get(f"{type(kafkas).__name__}.{name}", normal.get(name))
            if make is not None:
                one, other = make(one), make(other)
            yield from _differences(one, other, normal, f"{at}.{name}")
    elif isinstance(kafkas, dict):
        for name, other in kafkas.items():
            yield from _differences(ours[name], other, normal, f"{at}.{name}")
    elif isinstance(kafkas, (list, tuple)):
        if len(ours) != len(kafkas):
            yield f"{at}: we say {len(ours)} things, Kafka {len(kafkas)}: {ours} and {kafkas}"
            return
        for number, (one, other) in enumerate(zip(ours, kafkas, strict=True)):
            yield from _differences(one, other, normal, f"{at}[{number}]")
    elif ours != kafkas:
        yield f"{at}: we say {ours!r}, Kafka {kafkas!r}"


def loose_differences(ours: Message, kafkas: Message, normal: Mapping[Field, Normal]) -> list[str]:
    """Likewise, where nobody promised the order of any list."""
    return list(
        _differences(_plain(ours, normal), _plain(kafkas, normal), {}, type(kafkas).__name__)
    )


def _plain(said: Any, normal: Mapping[Field, Normal]) -> Any:
    """An answer as plain values, lists in the order of their texts."""
    if isinstance(said, Message):
        found = {}
        for name in said.__struct_fields__:
            value = getattr(said, name)
            make = normal.get(f"{type(said).__name__}.{name}", normal.get(name))
            found[name] = _plain(value if make is None else make(value), normal)
        return found
    if isinstance(said, (list, tuple)):
        return sorted((_plain(each, normal) for each in said), key=str)
    return said
