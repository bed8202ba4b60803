"""Who a node is and where its files are: what `server.properties` must say before a node starts,
checked as Kafka checks it; and what this release does not do yet, refused in plain words."""

from __future__ import annotations

from typing import Final

import msgspec

from kraftline.config.effective import DEFAULT, Config
from kraftline.config.listeners import Endpoint, Listeners, read_listeners
from kraftline.config.metrics_listener import metrics_endpoint
from kraftline.config.quorum import VOTERS, check_quorum
from kraftline.config.values import BadConfig


class NodeSettings(msgspec.Struct, frozen=True, kw_only=True):
    """`log_dirs` and `metadata_log_dir` as they were given; the latter may be one of the former or
    a directory of its own."""

    node_id: int
    rack: str | None
    log_dirs: tuple[str, ...]
    metadata_log_dir: str
    listeners: Listeners
    overrides_by_address: dict[str, int]
    metrics: Endpoint | None


def node_settings(config: Config) -> NodeSettings:
    """BadConfig says what Kafka would not start with, or what a node here cannot do yet."""
    node_id = config.whole("node.id")
    if config.is_given("broker.id") and config["broker.id"] != node_id:
        raise _bad("node.id", "You must set `node.id` to the same value as `broker.id`.")
    check_quorum(config, node_id, config.texts("process.roles"))
    listeners = read_listeners(config)
    _check_inter_broker(config, listeners)
    _check_numbers(config)
    overrides = _by_address(config)
    if config["max.connections.per.ip"] == 0 and not overrides:
        raise _bad(
            "max.connections.per.ip",
            "max.connections.per.ip can be set to zero only if max.connections.per.ip.overrides "
            "property is set.",
        )
    log_dirs = _log_dirs(config)
    metadata_log_dir = config["metadata.log.dir"]
    if metadata_log_dir == "":  # to Kafka that is the working directory, and in part the root
        raise _bad(
            "metadata.log.dir", "metadata.log.dir is empty: name a directory, or leave it out"
        )
    rack = config["broker.rack"]
    return NodeSettings(
        node_id=node_id,
        rack=None if rack is None else str(rack),
        log_dirs=log_dirs,
        metadata_log_dir=log_dirs[0] if metadata_log_dir is None else str(metadata_log_dir),
        listeners=listeners,
        overrides_by_address=overrides,
        metrics=metrics_endpoint(config),
    )


_PRINCIPAL_BUILDER: Final = (
    "org.apache.kafka.common.security.authenticator.DefaultKafkaPrincipalBuilder"
)
STANDARD_AUTHORIZER: Final = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
# Classes of Java that allow or refuse what clients ask: to run without them would be to allow all.
_GUARDS: Final = (
    "create.topic.policy.class.name",
    "alter.config.policy.class.name",
)


def check_supported(config: Config) -> None:
    """What Kafka would start with, and this release does not."""
    roles = config.texts("process.roles")
    if set(roles) != {"broker", "controller"}:
        raise _bad(
            "process.roles",
            f"process.roles={','.join(roles)}: a node here is broker and controller at once; set "
            "process.roles=broker,controller. Joining controllers that run elsewhere is not "
            "supported yet.",
        )
    voters = config.texts(VOTERS)
    if len(voters) > 1:
        raise _bad(
            VOTERS,
            f"{VOTERS} names {len(voters)} voters: a node here is the only voter of its cluster. "
            "A quorum of several is Kafka's to run.",
        )
    for key in _GUARDS:
        if config[key]:
            raise _bad(
                key,
                f"{key}={config[key]} is not supported: nothing would be checked that it is there "
                "to check. Without it, every request is allowed.",
            )
    builder = config.setting("principal.builder.class")
    if builder.source != DEFAULT and builder.value != _PRINCIPAL_BUILDER:
        raise _bad(
            builder.name,
            f"{builder.name}={builder.value} is not supported: clients would not be who it says. "
            f"Leave it out, or name {_PRINCIPAL_BUILDER}.",
        )
    authorizer = config["authorizer.class.name"]
    if authorizer not in ("", STANDARD_AUTHORIZER):
        raise _bad(
            "authorizer.class.name",
            f"authorizer.class.name={authorizer} is not supported: nothing would be allowed or "
            f"denied as it says. {STANDARD_AUTHORIZER} is.",
        )


def _log_dirs(config: Config) -> tuple[str, ...]:
    found = config.texts("log.dirs") if config.is_given("log.dirs") else config.texts("log.dir")
    if not found:
        raise _bad(
            "log.dirs", "At least one log directory must be defined via log.dirs or log.dir."
        )
    return tuple(found)


def _check_inter_broker(config: Config, listeners: Listeners) -> None:
    name, mechanism = listeners.inter_broker, "sasl.mechanism.inter.broker.protocol"
    uses_sasl = any(each.name == name and each.is_sasl for each in listeners.advertised)
    enabled = config.of_listener(name, "sasl.enabled.mechanisms")
    if uses_sasl and isinstance(enabled, list) and config[mechanism] not in enabled:
        raise _bad(
            mechanism,
            f"{mechanism} must be included in sasl.enabled.mechanisms when SASL is used for "
            "inter-broker communication",
        )


def _check_numbers(config: Config) -> None:
    """Where one number must fit another, or a unit is chosen by several keys."""
    whole = config.whole
    if _in_ms(config, "log.roll") < 1:
        raise _bad("log.roll.ms", "log.roll.ms must be greater than or equal to 1")
    if _in_ms(config, "log.roll.jitter") < 0:
        raise _bad("log.roll.jitter.ms", "log.roll.jitter.ms must be greater than or equal to 0")
    if _retention_ms(config) == 0:
        raise _bad(
            "log.retention.ms",
            "log.retention.ms must be unlimited (-1) or, greater than or equal to 1",
        )
    threads = whole("log.cleaner.threads")
    if not threads:
        raise _bad("log.cleaner.threads", "log.cleaner.threads must be at least 1")
    if whole("log.cleaner.dedupe.buffer.size") / threads <= 1024 * 1024:
        raise _bad(
            "log.cleaner.dedupe.buffer.size",
            "log.cleaner.dedupe.buffer.size must be at least 1MB per cleaner thread.",
        )
    if whole("replica.fetch.wait.max.ms") > whole("replica.socket.timeout.ms"):
        raise _bad(
            "replica.socket.timeout.ms",
            "replica.socket.timeout.ms should always be at least replica.fetch.wait.max.ms to "
            "prevent unnecessary socket timeouts",
        )
    queued = whole("queued.max.request.bytes")
    if 0 < queued < whole("socket.request.max.bytes"):
        raise _bad(
            "queued.max.request.bytes",
            "queued.max.request.bytes must be larger or equal to socket.request.max.bytes",
        )
    delay, idle = whole("connection.failed.authentication.delay.ms"), "connections.max.idle.ms"
    if 0 <= whole(idle) <= delay:
        raise _bad(
            idle,
            f"connection.failed.authentication.delay.ms={delay} should always be less than "
            f"{idle}={whole(idle)} to prevent failed authentication responses from timing out",
        )


def _in_ms(config: Config, key: str) -> int:
    given = config[f"{key}.ms"]
    return given if isinstance(given, int) else config.whole(f"{key}.hours") * 3_600_000


def _retention_ms(config: Config) -> int:
    given, minutes = config["log.retention.ms"], config["log.retention.minutes"]
    if isinstance(given, int):
        return given
    if isinstance(minutes, int):
        return minutes * 60_000
    return config.whole("log.retention.hours") * 3_600_000


def _by_address(config: Config) -> dict[str, int]:
    """max.connections.per.ip.overrides: `address:limit, ...`."""
    key = "max.connections.per.ip.overrides"
    found: dict[str, int] = {}
    for entry in filter(None, (each.strip() for each in config.text(key).split(","))):
        address, colon, limit = entry.rpartition(":")
        if not colon or not limit.strip().isdecimal():
            raise _bad(
                key, f"Error parsing configuration property '{key}': {entry} is not ADDRESS:LIMIT"
            )
        found[address.strip()] = int(limit)
    return found


def _bad(key: str, text: str) -> BadConfig:
    return BadConfig.said(key, text)
