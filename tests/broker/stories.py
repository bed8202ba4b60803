"""What is asked of real Kafka and of us: valid things, odd things, in every version."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Any

from kraftline.records import Codec, Record, build_batch
from kraftline.schema.api.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from kraftline.schema.api.describe_log_dirs import DescribableLogDirTopic, DescribeLogDirsRequest
from kraftline.schema.api.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    ForgottenTopic,
    ReplicaState,
)
from kraftline.schema.api.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from kraftline.schema.api.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from kraftline.schema.api.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from kraftline.schema.uuids import Uuid
from tests.broker.comparing import Broker
from tests.broker.running import create_topic

# Of records: retention would take old ones away.
NOW = time.time_ns() // 1_000_000
STRANGE = Uuid.parse("AAAAAAAAAAAAAAAAAAAAew")


def batch(value: bytes = b"value", *, count: int = 1, when: int = NOW, **fields: Any) -> bytes:
    records = [Record(n, when + n, b"key", value) for n in range(count)]
    return build_batch(records, **fields)


def produce(
    topic: tuple[str, Uuid],
    records: Iterable[tuple[int, bytes | None]],
    *,
    acks: int = 1,
    timeout_ms: int = 1000,
    transactional_id: str | None = None,
) -> ProduceRequest:
    name, id = topic
    return ProduceRequest(
        transactional_id=transactional_id,
        acks=acks,
        timeout_ms=timeout_ms,
        topic_data=(
            TopicProduceData(
                name=name,
                topic_id=id,
                partition_data=tuple(
                    PartitionProduceData(index=index, records=data) for index, data in records
                ),
            ),
        ),
    )


def fetch(
    topic: tuple[str, Uuid],
    *partitions: FetchPartition,
    most: int = 1_000_000,
    least: int = 0,
    wait_ms: int = 0,
    isolation: int = 0,
    session: tuple[int, int] = (0, -1),
    forget: tuple[int, ...] = (),
    replica: int = -1,
    version: int = 12,
) -> FetchRequest:
    name, id = topic
    return FetchRequest(
        replica_id=replica if version < 15 else -1,
        replica_state=ReplicaState(replica_id=replica if version >= 15 else -1),
        max_wait_ms=wait_ms,
        min_bytes=least,
        max_bytes=most,
        isolation_level=isolation,
        session_id=session[0],
        session_epoch=session[1],
        topics=(FetchTopic(topic=name, topic_id=id, partitions=partitions),) if partitions else (),
        forgotten_topics_data=(
            (ForgottenTopic(topic=name, topic_id=id, partitions=forget),) if forget else ()
        ),
    )


def wanted(partition: int = 0, offset: int = 0, **fields: Any) -> FetchPartition:
    return FetchPartition(
        partition=partition, fetch_offset=offset, **{"partition_max_bytes": 1_000_000, **fields}
    )


def offsets(topic: str, *asked: tuple[int, ...], **fields: Any) -> ListOffsetsRequest:
    """`asked` are partitions and times; the current leader epoch may be a third."""
    return ListOffsetsRequest(
        replica_id=fields.pop("replica_id", -1),
        **fields,
        topics=(
            ListOffsetsTopic(
                name=topic,
                partitions=tuple(
                    ListOffsetsPartition(
                        partition_index=each[0],
                        timestamp=each[1],
                        current_leader_epoch=each[2] if len(each) > 2 else -1,
                    )
                    for each in asked
                ),
            ),
        ),
    )


# Produce


def produce_in_every_version(broker: Broker) -> list[object]:
    topic = broker.topic("every", partitions=2)
    said = []
    for version in range(3, 14):
        request = produce(topic, [(0, batch()), (1, batch(count=3)), (7, batch())], acks=-1)
        said.append(broker.ask(request, version))
    return said


def acks_of_all_kinds(broker: Broker) -> list[object]:
    topic = broker.topic("acks")
    said: list[object] = []
    for acks in (1, -1, 2, -2, 100):
        said += [
            broker.ask(produce(topic, [(0, batch())], acks=acks), version) for version in (3, 9, 13)
        ]
    return said


def topics_that_are_not_there(broker: Broker) -> list[object]:
    topic = broker.topic("there")
    said = []
    for version in (3, 8, 9, 12, 13):
        said.append(broker.ask(produce(("nowhere", STRANGE), [(0, batch())]), version))
        said.append(
            broker.ask(produce((topic[0], topic[1]), [(5, batch()), (-1, batch())]), version)
        )
        said.append(broker.ask(produce(("", Uuid(bytes(16))), [(0, batch())]), version))
    return said


def odd_records(broker: Broker) -> list[object]:
    topic = broker.topic("odd")
    good = batch()
    said = []
    # Records that are null are missing: Kafka never answers them.
    cases = [
        b"",
        b"\0",
        good[:40],
        good + good,
        good + good[:30],
        good[:-1],
        b"\xff" * 100,
        good[:16] + b"\1" + good[17:],
        batch(codec=Codec.ZSTD, count=10),
        good[:30] + b"\x55" + good[31:],
    ]
    for data in cases:
        said += [broker.ask(produce(topic, [(0, data)]), version) for version in (3, 6, 7, 9, 13)]
    return said


def refused_records(broker: Broker) -> list[object]:
    compacted = broker.topic("compacted", {"cleanup.policy": "compact"})
    timely = broker.topic(
        "timely",
        {"message.timestamp.before.max.ms": "3600000", "message.timestamp.after.max.ms": "1000"},
    )
    small = broker.topic("small", {"max.message.bytes": "200"})
    keyless = build_batch([Record(0, NOW, b"k", b"v"), Record(1, NOW, None, b"v")])
    said = []
    for version in (7, 8, 9, 13):
        said.append(broker.ask(produce(compacted, [(0, keyless)]), version))
        answer: Any = broker.ask(produce(timely, [(0, batch(count=2))]), version)
        for topic in answer["responses"]:
            for partition in topic["partition_responses"]:
                for error in partition["record_errors"]:  # it tells what time it is
                    error["batch_index_error_message"] = (
                        error["batch_index_error_message"] or ""
                    ).partition("within [")[0]
        said.append(answer)
        said.append(broker.ask(produce(small, [(0, batch(b"x" * 500))]), version))
    return said


def the_same_partition_twice(broker: Broker) -> list[object]:
    topic = broker.topic("twice")
    request = produce(topic, [(0, batch(count=2)), (0, batch(count=3))])
    return [
        *(broker.ask(request, version) for version in (3, 9, 13)),
        broker.ask(offsets(topic[0], (0, -1)), 5),
    ]


def idempotent_producers(broker: Broker) -> list[object]:
    topic = broker.topic("idempotent")

    def sent(epoch: int, sequence: int, count: int = 1) -> bytes:
        return batch(count=count, producer_id=4711, producer_epoch=epoch, base_sequence=sequence)

    order = [(0, 0), (0, 0), (0, 1), (0, 3), (0, 1), (1, 0), (0, 2), (1, 5), (1, 1), (2, 1)]
    return [broker.ask(produce(topic, [(0, sent(*each))], acks=-1), 9) for each in order]


def not_enough_replicas(broker: Broker) -> list[object]:
    topic = broker.topic("lonely", {"min.insync.replicas": "2"})
    return [
        broker.ask(produce(topic, [(0, batch())], acks=acks), version)
        for acks in (-1, 1)
        for version in (3, 8, 13)
    ]


def append_times(broker: Broker) -> list[object]:
    topic = broker.topic("appended", {"message.timestamp.type": "LogAppendTime"})
    return [broker.ask(produce(topic, [(0, batch())]), version) for version in (3, 9, 13)]


def transactions_of_nobody(broker: Broker) -> list[object]:
    topic = broker.topic("transactional")
    data = batch(producer_id=5, producer_epoch=0, base_sequence=0, is_transactional=True)
    return [
        broker.ask(produce(topic, [(0, data), (1, batch())], transactional_id=None), version)
        for version in (3, 9, 11, 12, 13)
    ]


def internal_topics(broker: Broker) -> list[object]:
    create_topic(broker.address, "__share_group_state", unless_there=True)
    topic = ("__share_group_state", STRANGE)
    return [
        *(broker.ask(produce(topic, [(0, batch())]), version) for version in (3, 9, 12)),
        broker.ask(deletion(("__share_group_state", 0, 0)), 2),
    ]


# Fetch


def filled(broker: Broker, name: str, *, partitions: int = 1, batches: int = 3) -> tuple[str, Uuid]:
    topic = broker.topic(name, partitions=partitions)
    for number in range(partitions):
        for n in range(batches):
            broker.ask(produce(topic, [(number, batch(b"%d" % n, count=4))]), 9)
    return topic


def fetch_in_every_version(broker: Broker) -> list[object]:
    topic = filled(broker, "fetched", partitions=2)
    said = []
    for version in range(4, 19):
        request = fetch(topic, wanted(0), wanted(1, 5), wanted(9), version=version)
        said.append(broker.ask(request, version))
    return said


def offsets_that_are_not_there(broker: Broker) -> list[object]:
    topic = filled(broker, "range")
    said = []
    for version in (4, 11, 12, 16, 18):
        said += [
            broker.ask(fetch(topic, wanted(0, offset), version=version), version)
            for offset in (-1, 12, 13, 1000)
        ]
    return said


def fetches_of_strange_topics(broker: Broker) -> list[object]:
    said = []
    for version in (4, 6, 7, 12, 13, 17, 18):
        for topic in (("nowhere", STRANGE), ("", Uuid(bytes(16)))):
            for session in ((0, -1), (0, 0)):
                request = fetch(topic, wanted(0), session=session, version=version)
                said.append(broker.ask(request, version))
    return said


def leader_epochs_in_a_fetch(broker: Broker) -> list[object]:
    topic = filled(broker, "epochs")
    said = []
    for version in (9, 12, 15, 16, 18):
        for epoch in (0, 1, 5):
            request = fetch(topic, wanted(0, current_leader_epoch=epoch), version=version)
            said.append(broker.ask(request, version))
    for version in (12, 16, 18):
        for epoch, offset in ((0, 5), (0, 12), (1, 3), (3, 12), (0, 13), (2, -1)):
            request = fetch(topic, wanted(0, offset, last_fetched_epoch=epoch), version=version)
            said.append(broker.ask(request, version))
    return said


def byte_limits(broker: Broker) -> list[object]:
    topic = filled(broker, "limits", partitions=3)
    size = len(batch(b"0", count=4))
    said = []
    for most in (0, 1, size - 1, size, size + 1, 2 * size, 4 * size, 10 * size):
        for each in (0, 1, size, 2 * size + 1, 10 * size):
            request = fetch(
                topic,
                *(wanted(n, partition_max_bytes=each) for n in range(3)),
                most=most,
                version=12,
            )
            said.append(broker.ask(request, 12))
    return said


def sessions(broker: Broker) -> list[object]:
    return [each for version in (7, 12, 13, 18) for each in _session(broker, version)]


def _session(broker: Broker, version: int) -> list[object]:
    said: list[object] = []
    topic = filled(broker, f"session{version}", partitions=3)

    def ask(*partitions: FetchPartition, **fields: Any) -> FetchResponse:
        answer = broker.message(fetch(topic, *partitions, version=version, **fields), version)
        assert isinstance(answer, FetchResponse)
        said.append(broker.plain(answer))
        return answer

    id = ask(wanted(0), wanted(1), wanted(2, 12), session=(0, 0)).session_id
    ask(session=(id, 1))
    ask(wanted(0, 12), wanted(1, 12), session=(id, 2))
    ask(session=(id, 3))
    broker.ask(produce(topic, [(2, batch())]), 9)
    ask(session=(id, 4))
    ask(session=(id, 4))  # again
    ask(wanted(2, 13), session=(id, 5), forget=(0,))
    ask(session=(id, 9))
    ask(session=(id + 1, 6))
    ask(wanted(0, 99), session=(id, 6))
    ask(session=(id, 7), forget=(0, 1, 2))
    ask(session=(id, 8))
    id = ask(wanted(0), session=(0, 0)).session_id
    ask(wanted(0), session=(id, -1))
    ask(session=(id, 1))
    id = ask(wanted(5), session=(0, 0)).session_id
    ask(session=(id, 1))
    ask(session=(0, 1))
    return said


def rotation_in_a_session(broker: Broker) -> list[object]:
    topic = filled(broker, "rotation", partitions=4)
    size = len(batch(b"0", count=4))
    answer = broker.message(
        fetch(topic, *map(wanted, range(4)), session=(0, 0), most=size, version=12), 12
    )
    assert isinstance(answer, FetchResponse)
    said = [broker.plain(answer)]
    for epoch in range(1, 7):
        request = fetch(topic, session=(answer.session_id, epoch), most=2 * size, version=12)
        said.append(broker.ask(request, 12))
    return said


def sessions_of_other_versions(broker: Broker) -> list[object]:
    topic = filled(broker, "mixed")
    said = []
    for first, then in ((12, 13), (13, 12)):
        answer = broker.message(fetch(topic, wanted(0), session=(0, 0), version=first), first)
        assert isinstance(answer, FetchResponse)
        said.append(broker.plain(answer))
        request = fetch(topic, session=(answer.session_id, 1), version=then)
        said.append(broker.ask(request, then))
    return said


def replicas_that_nobody_knows(broker: Broker) -> list[object]:
    topic = filled(broker, "replicas")
    said = []
    for version in (4, 9, 12, 14, 15, 16, 18):
        for replica in (2, 77):
            for epoch in (-1, 0, 3):
                request = fetch(
                    topic,
                    wanted(0, current_leader_epoch=epoch if version >= 9 else -1),
                    replica=replica,
                    version=version,
                )
                said.append(broker.ask(request, version))
    return said


def read_committed(broker: Broker) -> list[object]:
    topic = filled(broker, "committed")
    return [
        broker.ask(fetch(topic, wanted(0, offset), isolation=1, version=version), version)
        for version in (4, 11, 12, 18)
        for offset in (0, 12, 20)
    ]


# The others


def list_offsets_in_every_version(broker: Broker) -> list[object]:
    name, _ = filled(broker, "listed", partitions=2)
    empty, _ = broker.topic("empty")
    said = []
    for version in range(1, 12):
        for when in (-1, -2, -3, -4, -5, -6, -7, 0, NOW, NOW + 1, NOW + 3, NOW + 4, NOW + 1000):
            said.append(broker.ask(offsets(name, (0, when), (1, when), (5, when)), version))
            said.append(broker.ask(offsets(empty, (0, when)), version))
    return said


def odd_list_offsets(broker: Broker) -> list[object]:
    name, _ = filled(broker, "listed")
    said = []
    for version in (1, 2, 4, 5, 7, 11):
        said.append(broker.ask(offsets("nowhere", (0, -1)), version))
        said.append(broker.ask(offsets(name, (0, -1), (0, -2)), version))
        said.append(broker.ask(ListOffsetsRequest(replica_id=-1), version))
        said += [
            broker.ask(offsets(name, (0, -1), replica_id=replica), version)
            for replica in (-2, 1, 9)
        ]
        if version >= 2:
            said.append(broker.ask(offsets(name, (0, -1), (1, NOW), isolation_level=1), version))
        if version >= 4:
            said += [broker.ask(offsets(name, (0, -1, epoch)), version) for epoch in (0, 1, 4)]
    return said


def epoch_ends(broker: Broker) -> list[object]:
    name, _ = filled(broker, "ends")
    said = []
    for version in (2, 3, 4):
        for current in (-1, 0, 1):
            for epoch in (-1, 0, 1, 7):
                request = OffsetForLeaderEpochRequest(
                    replica_id=-1 if version >= 3 else -2,
                    topics=tuple(
                        OffsetForLeaderTopic(
                            topic=topic,
                            partitions=(
                                OffsetForLeaderPartition(
                                    partition=partition,
                                    current_leader_epoch=current,
                                    leader_epoch=epoch,
                                ),
                            ),
                        )
                        for topic, partition in ((name, 0), ("nowhere", 0))
                    ),
                )
                said.append(broker.ask(request, version))
    return said


def deletion(*asked: tuple[str, int, int]) -> DeleteRecordsRequest:
    return DeleteRecordsRequest(
        topics=tuple(
            DeleteRecordsTopic(
                name=name,
                partitions=(DeleteRecordsPartition(partition_index=partition, offset=offset),),
            )
            for name, partition, offset in asked
        ),
        timeout_ms=1000,
    )


def delete_records(broker: Broker) -> list[object]:
    compacted, _ = broker.topic("only-compacted", {"cleanup.policy": "compact"})
    both, _ = broker.topic("both-policies", {"cleanup.policy": "compact,delete"})
    said: list[object] = []
    for version in (0, 1, 2):
        topic = filled(broker, f"deleted{version}")
        name = topic[0]
        for offset in (-2, 13, 5, 3, 5, 6, -1, -1, 12):
            said.append(broker.ask(deletion((name, 0, offset)), version))
            said.append(broker.ask(offsets(name, (0, -2)), 5))
        said.append(broker.ask(fetch(topic, wanted(0, 3)), 12))
        said.append(broker.ask(deletion((name, 4, 0), ("nowhere", 0, 0)), version))
        said.append(broker.ask(deletion((compacted, 0, -1)), version))
        said.append(broker.ask(deletion((both, 0, -1)), version))
    return said


def log_dirs(broker: Broker) -> list[object]:
    topic = filled(broker, "placed", partitions=2)
    asked = (
        (DescribableLogDirTopic(topic=topic[0], partitions=(0, 1, 2)),),
        (DescribableLogDirTopic(topic="nowhere", partitions=(0,)),),
        (),
    )
    return [
        broker.ask(DescribeLogDirsRequest(topics=each), version)
        for version in range(1, 6)
        for each in asked
    ]


def waiting_costs_time(broker: Broker) -> list[object]:
    """A fetch with nothing to give waits as long as it may, and no longer."""
    topic = filled(broker, "patient")
    said: list[object] = []
    for least, wait, at in ((1, 300, 12), (10_000, 300, 0), (1, 300, 0), (1, 0, 12)):
        start = time.monotonic()
        said.append(broker.ask(fetch(topic, wanted(0, at), least=least, wait_ms=wait), 12))
        said.append(time.monotonic() - start >= 0.25)
    return said


STORIES = [
    produce_in_every_version,
    acks_of_all_kinds,
    topics_that_are_not_there,
    odd_records,
    refused_records,
    the_same_partition_twice,
    idempotent_producers,
    not_enough_replicas,
    append_times,
    transactions_of_nobody,
    internal_topics,
    fetch_in_every_version,
    offsets_that_are_not_there,
    fetches_of_strange_topics,
    leader_epochs_in_a_fetch,
    byte_limits,
    sessions,
    rotation_in_a_session,
    sessions_of_other_versions,
    replicas_that_nobody_knows,
    read_committed,
    list_offsets_in_every_version,
    odd_list_offsets,
    epoch_ends,
    delete_records,
    log_dirs,
    waiting_costs_time,
]
