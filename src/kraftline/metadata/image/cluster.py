"""Who is registered: brokers and controllers by node id."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import msgspec
from immutables import Map

from kraftline.metadata.faults import ReplayError
from kraftline.metadata.features import MetadataVersion
from kraftline.metadata.image.keyed import applied, drop_unnamed
from kraftline.metadata.registrations import (
    BrokerRegistration,
    ControllerRegistration,
    broker_from_record,
    controller_from_record,
    in_order,
)
from kraftline.metadata.write_options import Versioned, WriteOptions
from kraftline.schema.metadata.broker_registration_change_record import (
    BrokerRegistrationChangeRecord,
)
from kraftline.schema.metadata.fence_broker_record import FenceBrokerRecord
from kraftline.schema.metadata.register_broker_record import RegisterBrokerRecord
from kraftline.schema.metadata.register_controller_record import RegisterControllerRecord
from kraftline.schema.metadata.unfence_broker_record import UnfenceBrokerRecord
from kraftline.schema.metadata.unregister_broker_record import UnregisterBrokerRecord
from kraftline.schema.metadata.unregister_controller_record import UnregisterControllerRecord
from kraftline.schema.types import Message

# What BrokerRegistrationChange says in its numbers; None is "as it was".
_FENCING: Final = {1: True, 0: None, -1: False}
_SHUTDOWN: Final = {1: True, 0: None}


class ClusterImage(msgspec.Struct, frozen=True, gc=False):
    brokers: Map[int, BrokerRegistration] = Map()
    controllers: Map[int, ControllerRegistration] = Map()

    @property
    def is_empty(self) -> bool:
        # As in Kafka: controllers alone do not count.
        return not self.brokers

    def broker_epoch(self, broker: int) -> int:
        """-1 for one that is not registered."""
        found = self.brokers.get(broker)
        return -1 if found is None else found.epoch

    def losses(self, options: WriteOptions) -> Iterator[str]:
        for _, broker in sorted(self.brokers.items()):
            yield from broker.losses(options)
        if self.controllers and not options.version.controller_registration_supported:
            yield "controller registration data"

    def write(self, options: WriteOptions) -> Iterator[Versioned]:
        version = options.version.register_broker_record_version
        for _, broker in sorted(self.brokers.items()):
            yield broker.to_record(options), version
        controller_version = options.version.register_controller_record_version
        if controller_version is not None:
            for _, controller in sorted(self.controllers.items()):
                yield controller.to_record(), controller_version


class ClusterDelta:
    """`brokers` and `controllers` have those that changed; None is one that went."""

    __slots__ = ("brokers", "controllers", "image")

    def __init__(self, image: ClusterImage) -> None:
        self.image = image
        self.brokers: dict[int, BrokerRegistration | None] = {}
        self.controllers: dict[int, ControllerRegistration | None] = {}

    def broker(self, broker: int) -> BrokerRegistration | None:
        """The broker as it stands in this delta."""
        if broker in self.brokers:
            return self.brokers[broker]
        return self.image.brokers.get(broker)

    def replay(self, record: Message) -> None:
        match record:
            case RegisterBrokerRecord():
                self.brokers[record.broker_id] = broker_from_record(record)
            case UnregisterBrokerRecord():
                # Neither its epoch nor that it is there is looked at; only controllers do.
                self.brokers[record.broker_id] = None
            case FenceBrokerRecord():
                self._fence(record, "fence", True)
            case UnfenceBrokerRecord():
                self._fence(record, "unfence", False)
            case BrokerRegistrationChangeRecord():
                self._change(record)
            case RegisterControllerRecord():
                self.controllers[record.controller_id] = controller_from_record(record)
            case UnregisterControllerRecord():
                self.controllers[record.controller_id] = None

    def _fence(
        self, record: FenceBrokerRecord | UnfenceBrokerRecord, action: str, fenced: bool
    ) -> None:
        broker = self._registered(record.id, record.epoch, action, record)
        self.brokers[broker.id] = msgspec.structs.replace(broker, fenced=fenced)

    def _change(self, record: BrokerRegistrationChangeRecord) -> None:
        broker = self._registered(record.broker_id, record.broker_epoch, "change", record)
        if record.fenced not in _FENCING:
            raise _unknown("fenced", record.fenced, record)
        if record.in_controlled_shutdown not in _SHUTDOWN:
            raise _unknown("inControlledShutdown", record.in_controlled_shutdown, record)
        fenced = _FENCING[record.fenced]
        shutdown = _SHUTDOWN[record.in_controlled_shutdown]
        cordoned = record.cordoned_log_dirs
        after = msgspec.structs.replace(
            broker,
            fenced=broker.fenced if fenced is None else fenced,
            in_controlled_shutdown=broker.in_controlled_shutdown if shutdown is None else shutdown,
            directories=in_order(record.log_dirs) if record.log_dirs else broker.directories,
            cordoned_directories=broker.cordoned_directories if cordoned is None else cordoned,
        )
        if after != broker:
            self.brokers[broker.id] = after

    def _registered(
        self, broker: int, epoch: int, action: str, record: Message
    ) -> BrokerRegistration:
        found = self.broker(broker)
        if found is None:
            raise ReplayError(
                f"Tried to {action} broker {broker}, but that broker was not registered.",
                record=record,
            )
        if found.epoch != epoch:
            raise ReplayError(
                f"Tried to {action} broker {broker}, but the given epoch, {epoch}, did not match "
                f"the current broker epoch, {found.epoch}",
                record=record,
            )
        return found

    def finish_snapshot(self) -> None:
        drop_unnamed(self.image.brokers, self.brokers)
        drop_unnamed(self.image.controllers, self.controllers)

    def handle_metadata_version_change(self, version: MetadataVersion) -> None:
        """Nothing depends on it."""

    def apply(self) -> ClusterImage:
        image = self.image
        brokers = applied(image.brokers, self.brokers)
        controllers = applied(image.controllers, self.controllers)
        if brokers is image.brokers and controllers is image.controllers:
            return image
        return ClusterImage(brokers, controllers)


def _unknown(field: str, value: int, record: Message) -> ReplayError:
    return ReplayError(f"unknown value for {field} field: {value}", record=record)
