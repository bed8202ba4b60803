"""One effect of the log told as changes: what each record did to the state before it."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import msgspec

from kraftline.inspect.cluster.causes import Causes
from kraftline.inspect.cluster.state import State
from kraftline.metadata import words
from kraftline.metadata.faults import ReplayError
from kraftline.metadata.image.client_quotas import QuotaEntity
from kraftline.metadata.image.configs import TOPIC, ConfigResource
from kraftline.metadata.loader import Effect, FaultHandler, Placed, record_fault
from kraftline.metadata.words import Change
from kraftline.schema.metadata.access_control_entry_record import AccessControlEntryRecord
from kraftline.schema.metadata.broker_registration_change_record import (
    BrokerRegistrationChangeRecord,
)
from kraftline.schema.metadata.clear_elr_record import ClearElrRecord
from kraftline.schema.metadata.client_quota_record import ClientQuotaRecord
from kraftline.schema.metadata.config_record import ConfigRecord
from kraftline.schema.metadata.delegation_token_record import DelegationTokenRecord
from kraftline.schema.metadata.feature_level_record import FeatureLevelRecord
from kraftline.schema.metadata.fence_broker_record import FenceBrokerRecord
from kraftline.schema.metadata.partition_change_record import PartitionChangeRecord
from kraftline.schema.metadata.partition_record import PartitionRecord
from kraftline.schema.metadata.producer_ids_record import ProducerIdsRecord
from kraftline.schema.metadata.register_broker_record import RegisterBrokerRecord
from kraftline.schema.metadata.register_controller_record import RegisterControllerRecord
from kraftline.schema.metadata.remove_access_control_entry_record import (
    RemoveAccessControlEntryRecord,
)
from kraftline.schema.metadata.remove_delegation_token_record import RemoveDelegationTokenRecord
from kraftline.schema.metadata.remove_topic_record import RemoveTopicRecord
from kraftline.schema.metadata.remove_user_scram_credential_record import (
    RemoveUserScramCredentialRecord,
)
from kraftline.schema.metadata.topic_record import TopicRecord
from kraftline.schema.metadata.unfence_broker_record import UnfenceBrokerRecord
from kraftline.schema.metadata.unregister_broker_record import UnregisterBrokerRecord
from kraftline.schema.metadata.unregister_controller_record import UnregisterControllerRecord
from kraftline.schema.metadata.user_scram_credential_record import UserScramCredentialRecord
from kraftline.schema.metadata.zk_migration_state_record import ZkMigrationStateRecord
from kraftline.schema.types import Message
from kraftline.schema.uuids import Uuid


class Told(msgspec.Struct, frozen=True, kw_only=True):
    """A change with its moment: where it took effect, and when. `count` is above 1 where several
    like it were folded into this one; `subjects` are then theirs."""

    offset: int
    time: int
    change: Change
    count: int = 1
    subjects: tuple[str, ...] = ()


class Teller:
    """Replays effects and tells of each. `wanted` lets a record be passed over untold."""

    def __init__(
        self,
        state: State,
        faults: FaultHandler,
        wanted: Callable[[Message], bool] | None = None,
    ) -> None:
        self.state = state
        self._faults = faults
        self._wanted = wanted

    def tell(self, effect: Effect, time: int) -> list[Told]:
        batch, transaction = effect.batch, effect.transaction
        if effect.dropped is not None:
            assert transaction is not None
            count = sum(len(records) for _, records in transaction.waiting)
            change = words.transaction_change(transaction.name, count, effect.dropped)
            offset = batch.last_offset if effect.marker is None else effect.marker
            return [Told(offset=offset, time=time, change=change)]
        if batch.controls:
            return [
                Told(offset=offset, time=time, change=change)
                for offset, control in enumerate(batch.controls, batch.base_offset)
                if isinstance(control.message, Message)
                for change in [words.log_change(control.message, batch.epoch)]
                if change is not None
            ]
        return list(self._records(effect, time))

    def _records(self, effect: Effect, time: int) -> Iterator[Told]:
        causes = Causes(self.state, effect.records)
        topics = _NewTopics(self.state, effect.records)
        for record in effect.records:
            offset = record.offset if effect.marker is None else effect.marker
            message = record.message
            if topics.take(message, offset):
                self._replay(record)
                continue
            if self._wanted is not None and not self._wanted(message):
                self._replay(record)
                continue
            for change in self._changes(record, causes):
                yield Told(offset=offset, time=time, change=change)
        for offset, change in topics.told():
            yield Told(offset=offset, time=time, change=change)

    def _replay(self, record: Placed) -> bool:
        try:
            self.state.replay(record.message)
        except ReplayError as error:
            self._faults.handle(record_fault(record.offset, record.message, error))
            return False
        return True

    def _changes(self, record: Placed, causes: Causes) -> list[Change]:
        state, message = self.state, record.message
        # First, since most records of a log are of these two.
        if isinstance(message, PartitionChangeRecord | PartitionRecord):
            topic, number = message.topic_id, message.partition_id
            before = state.partition(topic, number)
            if not self._replay(record) or before is None:
                return []
            after = state.partition(topic, number)
            name = state.topic_name(topic)
            assert after is not None
            assert name is not None
            return words.partition_changes(name, number, before, after, causes.why)
        match message:
            case RemoveTopicRecord(topic_id=topic):
                name, partitions = state.topic_name(topic), state.partitions(topic)
                if not self._replay(record) or name is None:
                    return []
                return [words.topic_deleted(name, topic, partitions)]
            case RegisterBrokerRecord(broker_id=broker):
                return self._broker(record, broker)
            case UnregisterBrokerRecord(broker_id=broker):
                return self._broker(record, broker)
            case FenceBrokerRecord(id=broker) | UnfenceBrokerRecord(id=broker):
                return self._broker(record, broker)
            case BrokerRegistrationChangeRecord(broker_id=broker):
                return self._broker(record, broker)
            case ClearElrRecord(topic_name=name):
                return [words.elr_cleared(name)] if self._replay(record) else []
            case ZkMigrationStateRecord():
                change = words.log_change(message, 0)
                return [] if change is None else [change]
        return self._setting(record)

    def _broker(self, record: Placed, broker: int) -> list[Change]:
        before = self.state.broker(broker)
        if not self._replay(record):
            return []
        return words.broker_changes(broker, before, self.state.broker(broker))

    def _setting(self, record: Placed) -> list[Change]:
        """Records that set one value: how it was, how it is."""
        state = self.state
        change: Change | None = None
        match record.message:
            case ConfigRecord(resource_type=kind, resource_name=owner, name=key):
                resource = ConfigResource(kind, owner)
                old = state.config(resource, key)
                if self._replay(record):
                    change = words.config_change(resource, key, old, state.config(resource, key))
            case FeatureLevelRecord(name=name, feature_level=level):
                was = state.feature(name)
                # A level that this release does not know is told of all the same.
                self._replay(record)
                change = words.feature_change(name, was, level)
            case ClientQuotaRecord(key=key) as message:
                entity = _entity(message)
                limit = state.quota(entity, key)
                if self._replay(record):
                    change = words.quota_change(entity, key, limit, state.quota(entity, key))
            case AccessControlEntryRecord(id=key) | RemoveAccessControlEntryRecord(id=key):
                acl = state.acl(key)
                return words.acl_changes(acl, state.acl(key)) if self._replay(record) else []
            case UserScramCredentialRecord() | RemoveUserScramCredentialRecord() as message:
                user = (message.mechanism, message.name)
                credential = state.scram(user)
                if self._replay(record):
                    change = words.scram_change(user, credential, state.scram(user))
            case DelegationTokenRecord(token_id=key) | RemoveDelegationTokenRecord(token_id=key):
                token = state.token(key)
                if self._replay(record):
                    change = words.token_change(token, state.token(key))
            case ProducerIdsRecord():
                ids = state.next_producer_id
                if self._replay(record):
                    change = words.producer_ids_change(ids, state.next_producer_id)
            case (
                RegisterControllerRecord(controller_id=node)
                | UnregisterControllerRecord(controller_id=node)
            ):
                controller = state.controller(node)
                if self._replay(record):
                    return words.controller_changes(node, controller, state.controller(node))
            case _:
                self._replay(record)
        return [] if change is None else [change]


class _NewTopics:
    """Topics that an effect creates and partitions that it adds: told once each, at its end."""

    def __init__(self, state: State, records: list[Placed]) -> None:
        self._state = state
        self._created: dict[Uuid, tuple[int, str]] = {}
        # Up to 3.3 a topic's configs come before it.
        self._configs: dict[str, dict[str, str]] = {
            each.message.name: {} for each in records if isinstance(each.message, TopicRecord)
        }
        self._added: dict[Uuid, dict[int, int]] = {}

    def take(self, message: Message, offset: int) -> bool:
        """Whether the record is part of a creation. Its effect is for the caller."""
        if isinstance(message, PartitionChangeRecord):
            return False
        match message:
            case TopicRecord(name=name, topic_id=topic):
                self._created[topic] = (offset, name)
                return True
            case PartitionRecord(topic_id=topic, partition_id=number):
                if topic in self._created:
                    return True
                if (
                    self._state.topic_name(topic) is None
                    or self._state.partition(topic, number) is not None
                ):
                    return False
                self._added.setdefault(topic, {})[number] = offset
                return True
            case ConfigRecord(resource_type=kind, resource_name=name, name=key, value=value):
                if kind == TOPIC and name in self._configs and value is not None:
                    self._configs[name][key] = value
                    return True
        return False

    def told(self) -> Iterator[tuple[int, Change]]:
        state = self._state
        for topic, (offset, name) in self._created.items():
            if state.topic_name(topic) is not None:
                yield (
                    offset,
                    words.topic_created(
                        name, topic, state.partitions(topic), self._configs.get(name)
                    ),
                )
        for topic, numbers in self._added.items():
            name_now = state.topic_name(topic)
            if name_now is None:
                continue
            now = state.partitions(topic)
            added = {number: now[number] for number in numbers if number in now}
            yield min(numbers.values()), words.partitions_added(name_now, added, len(now))


def _entity(message: ClientQuotaRecord) -> QuotaEntity:
    named = {each.entity_type: each.entity_name for each in message.entity}
    return tuple(sorted(named.items(), key=lambda each: each[0]))
