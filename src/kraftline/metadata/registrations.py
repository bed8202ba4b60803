"""Brokers and controllers as they registered themselves, and what has happened to them since."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator

import msgspec

from kraftline.metadata.faults import ReplayError
from kraftline.metadata.partition import LOST, MIGRATING, UNASSIGNED
from kraftline.metadata.write_options import WriteOptions
from kraftline.schema.metadata.register_broker_record import (
    BrokerEndpoint,
    BrokerFeature,
    RegisterBrokerRecord,
)
from kraftline.schema.metadata.register_controller_record import (
    ControllerEndpoint,
    ControllerFeature,
    RegisterControllerRecord,
)
from kraftline.schema.uuids import Uuid

_PROTOCOLS = range(4)  # PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL
_two_longs = struct.Struct(">qq").unpack


class Listener(msgspec.Struct, frozen=True, gc=False):
    """`security_protocol` is Kafka's number: 0 PLAINTEXT, 1 SSL, 2 SASL_PLAINTEXT, 3 SASL_SSL."""

    name: str
    host: str
    port: int
    security_protocol: int


class SupportedFeature(msgspec.Struct, frozen=True, gc=False):
    name: str
    min_version: int
    max_version: int


class BrokerRegistration(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """Listeners and features are in the order of their names, directories in that of their ids;
    `cordoned_directories` is None until the broker first told of them."""

    id: int
    epoch: int
    incarnation_id: Uuid
    listeners: tuple[Listener, ...]
    features: tuple[SupportedFeature, ...]
    rack: str | None
    fenced: bool
    in_controlled_shutdown: bool = False
    is_migrating_zk_broker: bool = False
    directories: tuple[Uuid, ...] = ()
    cordoned_directories: tuple[Uuid, ...] | None = None

    def listener(self, name: str) -> Listener | None:
        return next((each for each in self.listeners if each.name == name), None)

    def has_online_directory(self, directory: Uuid) -> bool:
        """A broker that never told of its directories counts as having any."""
        if directory in (UNASSIGNED, MIGRATING):
            return True
        if directory == LOST:
            return False
        return not self.directories or directory in self.directories

    @property
    def has_uncordoned_directories(self) -> bool:
        if not self.directories or self.cordoned_directories is None:
            return True
        return not set(self.directories) <= set(self.cordoned_directories)

    def losses(self, options: WriteOptions) -> Iterator[str]:
        version = options.version
        if self.is_migrating_zk_broker and not version.migration_supported:
            yield "the isMigratingZkBroker state of one or more brokers"
        if self.directories and not version.directory_assignment_supported:
            yield "the online log directories of one or more brokers"
        if self.cordoned_directories is not None and not version.cordoned_log_dirs_supported:
            yield "the cordoned log directories of one or more brokers"

    def to_record(self, options: WriteOptions) -> RegisterBrokerRecord:
        version = options.version
        return RegisterBrokerRecord(
            broker_id=self.id,
            is_migrating_zk_broker=self.is_migrating_zk_broker and version.migration_supported,
            incarnation_id=self.incarnation_id,
            broker_epoch=self.epoch,
            end_points=tuple(
                BrokerEndpoint(
                    name=each.name,
                    host=each.host,
                    port=each.port,
                    security_protocol=each.security_protocol,
                )
                for each in self.listeners
            ),
            features=tuple(
                BrokerFeature(
                    name=each.name,
                    min_supported_version=each.min_version,
                    max_supported_version=each.max_version,
                )
                for each in self.features
            ),
            rack=self.rack,
            fenced=self.fenced,
            in_controlled_shutdown=self.in_controlled_shutdown,
            log_dirs=self.directories if version.directory_assignment_supported else (),
            cordoned_log_dirs=(
                self.cordoned_directories if version.cordoned_log_dirs_supported else None
            ),
        )


class ControllerRegistration(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """Listeners and features are in the order of their names."""

    id: int
    incarnation_id: Uuid
    zk_migration_ready: bool
    listeners: tuple[Listener, ...]
    features: tuple[SupportedFeature, ...]

    def listener(self, name: str) -> Listener | None:
        return next((each for each in self.listeners if each.name == name), None)

    def to_record(self) -> RegisterControllerRecord:
        return RegisterControllerRecord(
            controller_id=self.id,
            incarnation_id=self.incarnation_id,
            zk_migration_ready=self.zk_migration_ready,
            end_points=tuple(
                ControllerEndpoint(
                    name=each.name,
                    host=each.host,
                    port=each.port,
                    security_protocol=each.security_protocol,
                )
                for each in self.listeners
            ),
            features=tuple(
                ControllerFeature(
                    name=each.name,
                    min_supported_version=each.min_version,
                    max_supported_version=each.max_version,
                )
                for each in self.features
            ),
        )


def broker_from_record(record: RegisterBrokerRecord) -> BrokerRegistration:
    if any(not each.name for each in record.end_points):
        raise ReplayError("Broker listeners must be named.", record=record)
    return BrokerRegistration(
        id=record.broker_id,
        epoch=record.broker_epoch,
        incarnation_id=record.incarnation_id,
        listeners=_listeners(record.end_points),
        features=_features(record.features),
        rack=record.rack,
        fenced=record.fenced,
        in_controlled_shutdown=record.in_controlled_shutdown,
        is_migrating_zk_broker=record.is_migrating_zk_broker,
        directories=in_order(record.log_dirs),
        cordoned_directories=record.cordoned_log_dirs,
    )


def controller_from_record(record: RegisterControllerRecord) -> ControllerRegistration:
    for each in record.end_points:
        if each.security_protocol not in _PROTOCOLS:
            raise ReplayError(f"Unknown security protocol {each.security_protocol}", record=record)
    return ControllerRegistration(
        id=record.controller_id,
        incarnation_id=record.incarnation_id,
        zk_migration_ready=record.zk_migration_ready,
        listeners=_listeners(record.end_points),
        features=_features(record.features),
    )


def in_order(directories: Iterable[Uuid]) -> tuple[Uuid, ...]:
    """As Java orders uuids: by two signed numbers."""
    return tuple(sorted(directories, key=_two_longs))


def _listeners(
    points: Iterable[BrokerEndpoint] | Iterable[ControllerEndpoint],
) -> tuple[Listener, ...]:
    # A name that comes twice counts as it comes last.
    by_name = {
        each.name: Listener(each.name, each.host, each.port, each.security_protocol)
        for each in points
    }
    return tuple(by_name[name] for name in sorted(by_name))


def _features(
    features: Iterable[BrokerFeature] | Iterable[ControllerFeature],
) -> tuple[SupportedFeature, ...]:
    by_name = {
        each.name: SupportedFeature(
            each.name, each.min_supported_version, each.max_supported_version
        )
        for each in features
    }
    return tuple(by_name[name] for name in sorted(by_name))
