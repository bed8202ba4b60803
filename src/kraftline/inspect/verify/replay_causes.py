"""Why a snapshot may differ from the log it was taken of: what the log says of those records.

Real Kafka has three faults of this kind. It keeps the configs of a topic that was created and
removed within one publication; it may keep records of a metadata transaction that was aborted; and
it may lose a SCRAM user who comes in the place of the last one of a mechanism within one
publication.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from kraftline.inspect.verify.replay_difference import Difference, Identity, identity
from kraftline.inspect.verify.replay_reading import read_batches
from kraftline.metadata.image.configs import TOPIC
from kraftline.metadata.loader import (
    CollectedFaults,
    Effect,
    MetadataBatch,
    Unreadable,
    effects,
    part_of,
)
from kraftline.metadata.words.security import MECHANISMS
from kraftline.schema.metadata.config_record import ConfigRecord
from kraftline.schema.metadata.remove_topic_record import RemoveTopicRecord
from kraftline.schema.metadata.remove_user_scram_credential_record import (
    RemoveUserScramCredentialRecord,
)
from kraftline.schema.metadata.topic_record import TopicRecord
from kraftline.schema.metadata.user_scram_credential_record import UserScramCredentialRecord
from kraftline.schema.uuids import Uuid

UNKNOWN = "the cause is unknown"


class _Aborted(NamedTuple):
    begin: int
    abort: int


class _Removed(NamedTuple):
    user: str
    mechanism: int
    offset: int


class Causes:
    """Looks through the log below an offset once, for what is to be explained and nothing else."""

    def __init__(self, segments: Sequence[str], below: int, found: Sequence[Difference]) -> None:
        self._wanted = {difference.identity for difference in found}
        # An aborted topic takes its partitions along, by whatever records they came.
        self._names = {
            difference.record.resource_name
            for difference in found
            if isinstance(difference.record, ConfigRecord)
            and difference.record.resource_type == TOPIC
        }
        self._aborted: dict[Identity, _Aborted] = {}
        self._removed: dict[str, int] = {}
        # Of users: where those that are to be explained came, and who went.
        self._users: dict[Identity, int] = {}
        self._removed_users: list[_Removed] = []
        self._look(segments, below)

    def of(self, difference: Difference) -> str:
        """Where the first image is the log's replay, and the second the snapshot."""
        aborted = self._aborted.get(difference.identity)
        if aborted is not None and difference.other is not None:
            return (
                f"the log has it in a transaction that began at offset {aborted.begin} and was "
                f"aborted at {aborted.abort}: Kafka's snapshots may keep what was aborted"
            )
        record = difference.record
        if difference.one is None and isinstance(record, ConfigRecord):
            removed = self._removed.get(record.resource_name)
            if record.resource_type == TOPIC and removed is not None:
                return (
                    f"topic {record.resource_name} was removed at offset {removed}: Kafka leaves "
                    "configs behind when a topic is created and removed in one publication"
                )
        if difference.other is None and isinstance(record, UserScramCredentialRecord):
            return self._of_user(record)
        return UNKNOWN

    def _of_user(self, record: UserScramCredentialRecord) -> str:
        came = self._users.get(identity(record))
        others = [
            each
            for each in self._removed_users
            if each.mechanism == record.mechanism and each.user != record.name
        ]
        if came is None or not others:
            return UNKNOWN
        nearest = min(others, key=lambda each: abs(each.offset - came))
        mechanism = MECHANISMS.get(record.mechanism, f"mechanism {record.mechanism}")
        return (
            f"{record.name} came at offset {came}, and {nearest.user} was removed at "
            f"{nearest.offset}: Kafka may lose a user who comes in the place of the last one with "
            f"{mechanism} in one publication. To mend it, set the user's credentials again"
        )

    def _look(self, segments: Sequence[str], below: int) -> None:
        names: dict[Uuid, str] = {}
        for effect in effects(_below(segments, below), CollectedFaults()):
            self._abort(effect)
            for record in effect.records:
                match record.message:
                    case TopicRecord(name=name, topic_id=topic_id) if name in self._names:
                        names[topic_id] = name
                        self._removed.pop(name, None)
                    case RemoveTopicRecord(topic_id=topic_id) if topic_id in names:
                        self._removed[names[topic_id]] = record.offset
                    case RemoveUserScramCredentialRecord(name=name, mechanism=mechanism):
                        self._removed_users.append(_Removed(name, mechanism, record.offset))
                    case UserScramCredentialRecord() as user if identity(user) in self._wanted:
                        self._users[identity(user)] = record.offset

    def _abort(self, effect: Effect) -> None:
        transaction = effect.transaction
        if transaction is None or effect.marker is None or effect.dropped is None:
            return
        for _, records in transaction.waiting:
            for message in records:
                if not isinstance(message, Unreadable) and identity(message) in self._wanted:
                    aborted = _Aborted(transaction.begin, effect.marker)
                    self._aborted[identity(message)] = aborted


def _below(segments: Sequence[str], below: int) -> Iterator[MetadataBatch]:
    for batch in read_batches(segments):
        if batch.base_offset >= below:
            return
        yield part_of(batch, 0, below - 1)
