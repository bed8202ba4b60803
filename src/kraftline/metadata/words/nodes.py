"""What happened to a broker or a controller."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from kraftline.metadata.registrations import (
    BrokerRegistration,
    ControllerRegistration,
    Listener,
)
from kraftline.metadata.words.change import Change
from kraftline.schema.uuids import Uuid

_PROTOCOLS = {0: "PLAINTEXT", 1: "SSL", 2: "SASL_PLAINTEXT", 3: "SASL_SSL"}


def endpoints(listeners: Iterable[Listener]) -> str:
    """As `listeners` in server.properties has them; the protocol where the name is another."""
    said = []
    for each in listeners:
        protocol = _PROTOCOLS.get(each.security_protocol, str(each.security_protocol))
        more = "" if protocol == each.name else f" ({protocol})"
        host = f"[{each.host}]" if ":" in each.host else each.host
        said.append(f"{each.name}://{host}:{each.port}{more}")
    return ", ".join(said) or "no endpoints"


def broker_changes(
    broker: int,
    before: BrokerRegistration | None,
    after: BrokerRegistration | None,
    *,
    directly: bool = True,
) -> list[Change]:
    """All that is different, the most important first. Not `directly`: something may have happened
    in between, such as a clean stop before a restart."""
    return list(_broker(broker, before, after, directly))


def _broker(
    broker: int,
    before: BrokerRegistration | None,
    after: BrokerRegistration | None,
    directly: bool,
) -> Iterator[Change]:
    if after is None:
        if before is not None:
            yield _said(broker, "unregistered", f"broker {broker} was unregistered", before, None)
        return
    if before is None:
        rack = "" if after.rack is None else f", rack {after.rack}"
        state = _fenced_state(after) or "in service"
        text = f"broker {broker} registered: {endpoints(after.listeners)}{rack}; {state}"
        yield _said(broker, "registered", text, None, after)
        return
    again = before.epoch != after.epoch or before.incarnation_id != after.incarnation_id
    if before.incarnation_id != after.incarnation_id:
        unclean = directly and not _stopped(before)
        how = "without a clean stop" if unclean else "with a new incarnation"
        state = _fenced_state(after)
        text = f"broker {broker} restarted {how}{f', {state}' if state else ''}"
        yield _said(broker, "restarted", text, before, after)
    elif before.epoch != after.epoch:
        text = f"broker {broker} registered again, as the same incarnation"
        yield _said(broker, "reregistered", text, before, after, minor=True)
    yield from _details(broker, before, after)
    if before.fenced != after.fenced and before.incarnation_id == after.incarnation_id:
        yield _fenced(broker, before, after)
    if after.in_controlled_shutdown and not before.in_controlled_shutdown:
        text = f"broker {broker} began a controlled shutdown"
        yield _said(broker, "shutting-down", text, False, True)
    elif before.in_controlled_shutdown and not after.in_controlled_shutdown and not again:
        yield _said(
            broker, "shutdown-over", f"broker {broker} is no longer shutting down", True, False
        )


def _fenced_state(broker: BrokerRegistration) -> str:
    if not broker.fenced:
        return ""
    stopped = broker.in_controlled_shutdown
    return "fenced since it was shut down" if stopped else "fenced until it has caught up"


def _stopped(broker: BrokerRegistration) -> bool:
    return broker.fenced or broker.in_controlled_shutdown


def _fenced(broker: int, before: BrokerRegistration, after: BrokerRegistration) -> Change:
    if not after.fenced:
        text = f"broker {broker} was unfenced: it is in service"
        return _said(broker, "unfenced", text, "fenced", "in service")
    if before.in_controlled_shutdown or after.in_controlled_shutdown:
        text = f"broker {broker} was fenced: its controlled shutdown is done"
    else:
        text = f"broker {broker} was fenced: no heartbeats came from it"
    return _said(broker, "fenced", text, "in service", "fenced")


def _details(
    broker: int, before: BrokerRegistration, after: BrokerRegistration
) -> Iterator[Change]:
    if before.listeners != after.listeners:
        was, now = endpoints(before.listeners), endpoints(after.listeners)
        yield _said(broker, "endpoints", f"endpoints of broker {broker}: {was} -> {now}", was, now)
    if before.rack != after.rack:
        text = f"rack of broker {broker}: {before.rack or 'none'} -> {after.rack or 'none'}"
        yield _said(broker, "rack", text, before.rack, after.rack)
    if before.directories != after.directories:
        yield from _directories(broker, before.directories, after.directories)
    if before.cordoned_directories != after.cordoned_directories:
        yield from _cordoned(
            broker, before.cordoned_directories or (), after.cordoned_directories or ()
        )
    if before.features != after.features:
        text = f"broker {broker} supports other feature levels than before: another release?"
        yield _said(broker, "features", text, _levels(before), _levels(after), minor=True)
    if before.is_migrating_zk_broker != after.is_migrating_zk_broker:
        text = f"broker {broker} is no longer of the ZooKeeper cluster"
        if after.is_migrating_zk_broker:
            text = f"broker {broker} takes part from the ZooKeeper cluster"
        yield _said(
            broker, "migration", text, before.is_migrating_zk_broker, after.is_migrating_zk_broker
        )


def _directories(
    broker: int, before: tuple[Uuid, ...], after: tuple[Uuid, ...]
) -> Iterator[Change]:
    gone = [each for each in before if each not in after]
    new = [each for each in after if each not in before]
    was, now = list(map(str, before)), list(map(str, after))
    if gone and before:
        text = f"broker {broker} lost {_named(gone, 'directory', 'directories')}"
        yield _said(broker, "directory.offline", text, was, now)
    if new:
        text = f"broker {broker} has {_named(new, 'a new directory', 'new directories')}"
        # Crossing metadata.version 3.7 every broker tells of its directories for the first time.
        yield _said(broker, "directory.online", text, was, now, minor=not before)


def _cordoned(broker: int, before: tuple[Uuid, ...], after: tuple[Uuid, ...]) -> Iterator[Change]:
    was, now = list(map(str, before)), list(map(str, after))
    shut = [each for each in after if each not in before]
    opened = [each for each in before if each not in after]
    if shut:
        text = f"broker {broker} cordoned {_named(shut, 'directory', 'directories')}"
        yield _said(broker, "directory.cordoned", text, was, now)
    if opened:
        text = f"broker {broker} opened {_named(opened, 'directory', 'directories')} again"
        yield _said(broker, "directory.uncordoned", text, was, now)


def _named(found: list[Uuid], one: str, many: str) -> str:
    return f"{one if len(found) == 1 else many} {', '.join(map(str, found))}"


def _levels(broker: BrokerRegistration) -> dict[str, list[int]]:
    return {each.name: [each.min_version, each.max_version] for each in broker.features}


def _said(
    broker: int, kind: str, text: str, before: Any, after: Any, *, minor: bool = False
) -> Change:
    return Change(
        kind=f"broker.{kind}",
        subject=f"broker {broker}",
        text=text,
        before=_plain(before),
        after=_plain(after),
        brokers=(broker,),
        minor=minor,
    )


def _plain(value: Any) -> Any:
    if isinstance(value, BrokerRegistration):
        return {
            "epoch": value.epoch,
            "incarnation": str(value.incarnation_id),
            "fenced": value.fenced,
            "in_controlled_shutdown": value.in_controlled_shutdown,
            "rack": value.rack,
            "endpoints": endpoints(value.listeners),
        }
    return value


def controller_changes(
    controller: int,
    before: ControllerRegistration | None,
    after: ControllerRegistration | None,
) -> list[Change]:
    if before == after:
        return []
    if after is None:
        kind, text = "unregistered", f"controller {controller} was unregistered"
    elif before is None:
        kind = "registered"
        text = f"controller {controller} registered: {endpoints(after.listeners)}"
    elif before.incarnation_id != after.incarnation_id:
        kind, text = "restarted", f"controller {controller} restarted with a new incarnation"
        if before.listeners != after.listeners:
            text += f", now at {endpoints(after.listeners)}"
    else:
        kind = "reregistered"
        text = f"controller {controller} registered again: {endpoints(after.listeners)}"
    return [
        Change(
            kind=f"controller.{kind}",
            subject=f"controller {controller}",
            text=text,
            before=None if before is None else endpoints(before.listeners),
            after=None if after is None else endpoints(after.listeners),
        )
    ]
