"""What a broker's configs may become while it runs, and what they are.

- A change is tried on the whole configuration: what Kafka would not start with, or not change to
  from what it has, is refused.
- Numbers of threads may at most double or halve at once.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from kraftline.config.dynamic import check_names, check_values, overlaid, sound
from kraftline.config.effective import Config
from kraftline.config.node_settings import node_settings
from kraftline.config.values import BadConfig
from kraftline.controller.java_order import in_string_order
from kraftline.controller.refusal import Refusal
from kraftline.metadata.image import MetadataImage
from kraftline.metadata.image.configs import BROKER
from kraftline.schema.api.error_codes import ErrorCode

ALL_BROKERS: Final = ""
_THREADS: Final = (
    *("num.io.threads", "num.replica.fetchers", "num.recovery.threads.per.data.dir"),
    *("background.threads", "num.network.threads", "remote.log.reader.threads"),
    "remote.log.manager.copier.thread.pool.size",
    "remote.log.manager.expiration.thread.pool.size",
    "remote.log.manager.follower.thread.pool.size",
)
_CLEANERS: Final = "log.cleaner.threads"


class BrokerConfigs(msgspec.Struct, frozen=True):
    """`started` is what the node was started with."""

    started: Config
    node_id: int

    def dynamic(self, image: MetadataImage) -> tuple[dict[str, str], dict[str, str]]:
        """What is set for all brokers, and for this one; only what a broker heeds."""
        of = image.configs.of
        return (
            sound(of(BROKER, ALL_BROKERS), of_all=True),
            sound(of(BROKER, str(self.node_id)), of_all=False),
        )

    def running(self, image: MetadataImage) -> Config:
        """The configuration as the metadata has it."""
        return overlaid(self.started, *self.dynamic(image))

    def heeded(self, image: MetadataImage, name: str) -> dict[str, str]:
        of_all, own = self.dynamic(image)
        return of_all if name == ALL_BROKERS else own

    def check_name(self, name: str) -> None:
        """A broker takes changes for all of them, or for itself."""
        if name == ALL_BROKERS:
            return
        try:
            number = int(name)
        except ValueError:
            raise _bad_request(f"Node id must be an integer, but it is: {name}") from None
        if number != self.node_id:
            raise _bad_request(
                f"Unexpected broker id, expected {self.node_id}, but received {name}"
            )

    def check(self, image: MetadataImage, name: str, target: Mapping[str, str]) -> None:
        """Refusal of what the configs of this broker, or of all, cannot become."""
        of_all, own = self.dynamic(image)
        ordered = {each: target[each] for each in in_string_order(target)}
        try:
            check_names(ordered)
            check_values(ordered, of_all=name == ALL_BROKERS)
            before = overlaid(self.started, of_all, own)
            if name == ALL_BROKERS:
                after = overlaid(self.started, ordered, own)
            else:
                after = overlaid(self.started, of_all, ordered)
        except BadConfig as problem:
            raise _bad_request(str(problem)) from None
        try:
            if not after.whole("log.cleaner.threads"):
                # Kafka divides the cleaner's memory by its threads, and says what Java says.
                raise _bad_request("/ by zero")
            settings = node_settings(after)
        except BadConfig as problem:
            told = str(problem)
            is_parsing = told.startswith("Error parsing")
            raise _bad_request(told if is_parsing else f"requirement failed: {told}") from None
        _check_cordoned(after, settings.log_dirs)
        _check_groups(after)
        wrong = what_is_wrong_with_change(before, after)
        if wrong is not None:
            raise _bad_request(
                f"Invalid value org.apache.kafka.common.config.ConfigException: {wrong} for "
                "configuration Invalid dynamic configuration"
            )


def _check_cordoned(config: Config, log_dirs: tuple[str, ...]) -> None:
    named = config.texts("cordoned.log.dirs")
    missing = [each for each in named if each not in log_dirs]
    if missing and named != ["*"]:
        raise _bad_request(
            "requirement failed: All entries in cordoned.log.dirs must be present in log.dirs or "
            f"log.dir. Missing entries : {', '.join(missing)}"
        )


def _check_groups(config: Config) -> None:
    for kind in ("consumer", "share", "streams"):
        name = f"group.{kind}.assignment.interval.ms"
        least, most = (f"group.{kind}.{each}.assignment.interval.ms" for each in ("min", "max"))
        if config.whole(name) < config.whole(least):
            raise _bad_request(f"{name} must be greater than or equal to {least}")
        if config.whole(name) > config.whole(most):
            raise _bad_request(f"{name} must be less than or equal to {most}")


def what_is_wrong_with_change(before: Config, after: Config) -> str | None:
    """In Kafka's words; None where a running broker takes it."""
    for name in _THREADS:
        old, new = before.whole(name), after.whole(name)
        said = f"Dynamic thread count update validation failed for {name}={new}"
        if new == old:
            continue
        if new < old // 2:
            return f"{said}, value should be at least half the current value {old}"
        if new > old * 2:
            return f"{said}, value should not be greater than double the current value {old}"
    old, new = before.whole(_CLEANERS), after.whole(_CLEANERS)
    said = "Log cleaner threads"
    if new < 1:
        return f"{said} should be at least 1"
    if new < old // 2:
        return f"{said} cannot be reduced to less than half the current value {old}"
    if new > old * 2:
        return f"{said} cannot be increased to more than double the current value {old}"
    return _local_retention(
        after, "log.local.retention.ms", "log.retention.ms", "retention.ms"
    ) or _local_retention(
        after, "log.local.retention.bytes", "log.retention.bytes", "retention.bytes"
    )


def _local_retention(config: Config, local: str, whole: str, of_topic: str) -> str | None:
    """What is kept here is no more than what is kept at all; -2 stands for the same."""
    kept, limit = config.whole(local), config.topic_default(of_topic).value
    assert isinstance(limit, int)
    if limit < 0 or kept == -2:
        return None
    said = f"Invalid value {kept} for configuration {local}: Value must not be"
    if kept == -1:
        return f"{said} -1 as {whole} value is set as {limit}."
    return f"{said} more than {whole} property value: {limit}" if kept > limit else None


def _bad_request(message: str) -> Refusal:
    return Refusal(ErrorCode.INVALID_REQUEST, message)
