"""What is configured for consumer groups: of the broker, and of a group over it."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Final

from kraftline.broker.coordinators.groups.consumer.assignors import ASSIGNORS
from kraftline.config.effective import Config
from kraftline.config.values import BadConfig
from kraftline.metadata.image import MetadataImage
from kraftline.metadata.image.configs import GROUP

_ASSIGNORS: Final = "group.consumer.assignors"
_SESSION: Final = "session.timeout.ms"
_HEARTBEAT: Final = "heartbeat.interval.ms"
_ASSIGNMENT: Final = "assignment.interval.ms"


class Migration(Enum):
    """Which groups with members may move to the other protocol."""

    BIDIRECTIONAL = "bidirectional"
    UPGRADE = "upgrade"
    DOWNGRADE = "downgrade"
    DISABLED = "disabled"

    @property
    def is_upgrade(self) -> bool:
        return self in (Migration.BIDIRECTIONAL, Migration.UPGRADE)

    @property
    def is_downgrade(self) -> bool:
        return self in (Migration.BIDIRECTIONAL, Migration.DOWNGRADE)


class Settings:
    """`assignors` are by name, the default first. Targets up to a weight of `assigns_at_once` are
    found between two requests, larger ones in a thread: it is about ten milliseconds."""

    def __init__(self, config: Config) -> None:
        for name in (_HEARTBEAT, _SESSION, _ASSIGNMENT):
            _check(config, name)
        if config.whole(f"group.consumer.{_HEARTBEAT}") >= config.whole(
            f"group.consumer.{_SESSION}"
        ):
            raise BadConfig.said(
                f"group.consumer.{_HEARTBEAT}",
                f"group.consumer.{_HEARTBEAT} must be less than group.consumer.{_SESSION}",
            )
        self._session = _Range(config, _SESSION)
        self._heartbeat = _Range(config, _HEARTBEAT)
        self._assignment = _Range(config, _ASSIGNMENT)
        self.assigns_at_once = 5000
        self.max_size = config.whole("group.consumer.max.size")
        self.classic_max_size = config.whole("group.max.size")
        self.regex_refresh_ms = config.whole("group.consumer.regex.refresh.interval.ms")
        self.migration = Migration(config.text("group.consumer.migration.policy").lower())
        self.assignors = tuple(config.texts("group.consumer.assignors"))
        for name in self.assignors:
            if name not in ASSIGNORS:
                raise BadConfig.said(
                    _ASSIGNORS,
                    f"{name} is none of the assignors that this node has: {', '.join(ASSIGNORS)}",
                )

    def follow(self, config: Config) -> None:
        """What changes while the broker runs."""
        self._assignment = _Range(config, _ASSIGNMENT)

    def session_ms(self, group_id: str, image: MetadataImage) -> int:
        return self._session.of(_given(group_id, image))

    def heartbeat_ms(self, group_id: str, image: MetadataImage) -> int:
        return self._heartbeat.of(_given(group_id, image))

    def assignment_ms(self, group_id: str, image: MetadataImage) -> int:
        return self._assignment.of(_given(group_id, image))


class _Range:
    """One time: what the broker says, and between which bounds a group may say otherwise."""

    def __init__(self, config: Config, name: str) -> None:
        self._name = f"consumer.{name}"
        self._least = config.whole(f"group.consumer.min.{name}")
        self._most = config.whole(f"group.consumer.max.{name}")
        self._default = self._within(config.whole(f"group.consumer.{name}"))

    def of(self, given: Mapping[str, str]) -> int:
        text = given.get(self._name)
        return self._default if text is None else self._within(int(text))

    def _within(self, ms: int) -> int:
        return min(max(ms, self._least), self._most)


def _check(config: Config, name: str) -> None:
    """Kafka does not start with bounds that make no sense."""
    own, least, most = (f"group.consumer.{which}{name}" for which in ("", "min.", "max."))
    for high, low in ((most, least), (own, least)):
        if config.whole(high) < config.whole(low):
            raise BadConfig.said(high, f"{high} must be greater than or equal to {low}")
    if config.whole(own) > config.whole(most):
        raise BadConfig.said(own, f"{own} must be less than or equal to {most}")


def _given(group_id: str, image: MetadataImage) -> Mapping[str, str]:
    return image.configs.of(GROUP, group_id)
