"""When a broker is fenced, unfenced, let go and refused: each rule by itself, without a clock."""

from __future__ import annotations

import msgspec

from kraftline.controller.heartbeats import Beating, fence_stale, heartbeat
from kraftline.controller.producer_ids import allocate_producer_ids
from kraftline.controller.registration import Registering, register
from kraftline.controller.sessions import Session, Sessions
from kraftline.controller.topic_configs import TopicConfigs
from kraftline.metadata.image import MetadataDelta, MetadataImage, Provenance
from kraftline.node.standalone import standalone_config
from kraftline.schema import metadata as m
from kraftline.schema.api.allocate_producer_ids import AllocateProducerIdsRequest
from kraftline.schema.api.broker_heartbeat import BrokerHeartbeatRequest, BrokerHeartbeatResponse
from kraftline.schema.api.broker_registration import (
    BrokerRegistrationRequest,
    BrokerRegistrationResponse,
)
from kraftline.schema.api.error_codes import ErrorCode
from kraftline.schema.uuids import Uuid
from tests.controller.broker_stories import CLUSTER, directory, features, incarnation
from tests.controller.images import broker, image_of

TIMEOUT_MS = 9_000
TOPIC = Uuid(bytes(15) + b"\xaa")
CONFIGS = TopicConfigs(standalone_config({"log.dirs": "/nowhere"}), 1)
END = 100


class World:
    """A cluster and its sessions, to which decisions are applied one after the other."""

    def __init__(self, image: MetadataImage) -> None:
        self.image = image
        self.now = 0
        self.sessions = Sessions.activated(image, TIMEOUT_MS, 0)

    def beat(
        self,
        number: int = 1,
        *,
        offset: int = END,
        epoch: int | None = None,
        fence: bool = False,
        leave: bool = False,
        offline: tuple[Uuid, ...] = (),
    ) -> BrokerHeartbeatResponse:
        request = BrokerHeartbeatRequest(
            broker_id=number,
            broker_epoch=number if epoch is None else epoch,
            current_metadata_offset=offset,
            want_fence=fence,
            want_shut_down=leave,
            offline_log_dirs=offline,
        )
        at = Beating(configs=CONFIGS, sessions=self.sessions, end_offset=END, now=self.now)
        decision = heartbeat(self.image, request, at)
        self._apply(decision.records, decision.sessions)
        return decision.response

    def register(self, number: int, life: int, **more: object) -> BrokerRegistrationResponse:
        request = BrokerRegistrationRequest(
            broker_id=number,
            cluster_id=CLUSTER,
            incarnation_id=incarnation(number, life),
            features=features(),
            log_dirs=(directory(number),),
        )
        request = msgspec.structs.replace(request, **more)
        at = Registering(
            cluster_id=CLUSTER,
            configs=CONFIGS,
            sessions=self.sessions,
            end_offset=END,
            now=self.now,
        )
        decision = register(self.image, request, at)
        self._apply(decision.records, decision.sessions)
        return decision.response

    def fence_stale(self) -> int | None:
        decision = fence_stale(self.image, CONFIGS, self.sessions, self.now)
        self._apply(decision.records, decision.sessions)
        return decision.response

    def is_fenced(self, number: int = 1) -> bool:
        return self.image.cluster.brokers[number].fenced

    def leader(self) -> int:
        found = self.image.topics.partition(TOPIC, 0)
        assert found is not None
        return found.leader

    def _apply(self, records: object, sessions: Sessions | None) -> None:
        delta = MetadataDelta(self.image)
        for record, _ in records:  # type: ignore[attr-defined]  # a decision's
            delta.replay(record)
        self.image = delta.apply(Provenance(END, 1, 0, True))
        self.sessions = sessions or self.sessions


def led_by(leader: int, *replicas: int) -> list[m.TopicRecord | m.PartitionRecord]:
    return [
        m.TopicRecord(name="t", topic_id=TOPIC),
        m.PartitionRecord(
            partition_id=0,
            topic_id=TOPIC,
            replicas=replicas,
            isr=replicas,
            leader=leader,
            leader_epoch=0,
            partition_epoch=0,
            directories=tuple(directory(each) for each in replicas),
        ),
    ]


def test_a_broker_that_has_not_read_its_registration_stays_fenced() -> None:
    world = World(image_of(broker(1, fenced=True)))
    told = world.beat(offset=0)
    assert (told.is_caught_up, told.is_fenced) == (False, True)
    assert world.is_fenced()


def test_a_broker_that_wants_to_be_fenced_stays_fenced() -> None:
    world = World(image_of(broker(1, fenced=True)))
    told = world.beat(fence=True)
    assert (told.is_caught_up, told.is_fenced) == (True, True)


def test_a_broker_that_is_caught_up_and_ready_is_unfenced() -> None:
    world = World(image_of(broker(1, fenced=True)))
    assert not world.beat().is_fenced
    assert not world.is_fenced()


def test_an_unfenced_broker_that_wants_it_is_fenced_and_leads_nothing() -> None:
    world = World(image_of(broker(1), broker(2), *led_by(1, 1, 2)))
    assert world.beat(fence=True).is_fenced
    assert world.is_fenced()
    assert world.leader() == 2


def test_the_only_replica_in_sync_stays_so_when_it_is_fenced() -> None:
    world = World(image_of(broker(1), *led_by(1, 1)))
    world.beat(fence=True)
    found = world.image.topics.partition(TOPIC, 0)
    assert found is not None
    assert (found.leader, found.isr or found.elr) == (-1, (1,))


def test_a_broker_that_was_fenced_leads_its_partitions_again_when_it_comes_back() -> None:
    world = World(image_of(broker(1), *led_by(1, 1)))
    world.beat(fence=True)
    world.beat()
    assert world.leader() == 1


def test_a_stale_broker_epoch_is_refused_and_changes_nothing() -> None:
    world = World(image_of(broker(1)))
    before = world.image, world.sessions
    assert world.beat(epoch=99).error_code == ErrorCode.STALE_BROKER_EPOCH
    assert world.beat(7).error_code == ErrorCode.STALE_BROKER_EPOCH
    assert (world.image.cluster, world.sessions) == (before[0].cluster, before[1])
    stale = AllocateProducerIdsRequest(broker_id=1, broker_epoch=99)
    decision = allocate_producer_ids(world.image, stale)
    assert decision.response.error_code == ErrorCode.STALE_BROKER_EPOCH
    assert not decision.records


def test_a_silent_broker_is_fenced_when_its_session_has_ended_and_not_before() -> None:
    world = World(image_of(broker(1)))
    world.beat()
    world.now = TIMEOUT_MS
    assert world.fence_stale() is None
    world.now = TIMEOUT_MS + 1
    assert world.fence_stale() == 1
    assert world.is_fenced()
    assert world.fence_stale() is None


def test_the_broker_that_was_silent_for_longest_is_fenced_first() -> None:
    world = World(image_of(broker(1), broker(2)))
    world.beat(2)
    world.now = 1
    world.beat(1)
    world.now = 2 * TIMEOUT_MS
    assert [world.fence_stale(), world.fence_stale(), world.fence_stale()] == [2, 1, None]


def test_a_broker_that_shuts_down_and_leads_nothing_goes_at_once() -> None:
    world = World(image_of(broker(1)))
    told = world.beat(leave=True)
    assert (told.should_shut_down, told.is_fenced) == (True, True)


def test_a_broker_that_shuts_down_stays_until_others_know_its_leaderships_moved() -> None:
    world = World(image_of(broker(1), broker(2), *led_by(1, 1, 2)))
    world.beat(2, offset=END - 1)
    told = world.beat(leave=True)
    assert (told.should_shut_down, told.is_fenced) == (False, False)
    assert world.leader() == 2
    assert world.image.cluster.brokers[1].in_controlled_shutdown
    assert not world.beat(leave=True).should_shut_down
    world.beat(2, offset=END + 10)
    assert world.beat(leave=True).should_shut_down
    assert world.is_fenced()


def test_a_fenced_broker_that_shuts_down_goes_at_once() -> None:
    world = World(image_of(broker(1, fenced=True)))
    assert world.beat(leave=True, fence=True).should_shut_down


def test_a_new_incarnation_is_refused_while_the_one_before_is_alive() -> None:
    world = World(image_of(broker(1)))
    world.beat()
    told = world.register(1, 1)
    assert told.error_code == ErrorCode.DUPLICATE_BROKER_REGISTRATION


def test_a_new_incarnation_starts_fenced_with_a_new_epoch() -> None:
    world = World(image_of(broker(1)))
    world.now = TIMEOUT_MS + 1
    told = world.register(1, 1)
    assert (told.error_code, told.broker_epoch) == (ErrorCode.NONE, END)
    assert world.is_fenced()


def test_the_same_incarnation_keeps_its_epoch_and_stays_unfenced() -> None:
    world = World(image_of(broker(1)))
    world.beat()
    told = world.register(1, 0)
    assert (told.error_code, told.broker_epoch) == (ErrorCode.NONE, 1)
    assert not world.is_fenced()


def test_a_broker_of_another_cluster_is_refused() -> None:
    told = World(image_of()).register(1, 0, cluster_id="another")
    assert told.error_code == ErrorCode.INCONSISTENT_CLUSTER_ID


def test_a_replica_in_a_failed_directory_leads_nothing() -> None:
    world = World(image_of(broker(1, directories=2), broker(2), *led_by(1, 1, 2)))
    world.beat(offline=(directory(1),))
    assert world.leader() == 2
    assert world.image.cluster.brokers[1].directories == (directory(1, 1),)
    assert not world.is_fenced()


def test_a_controller_that_starts_gives_every_unfenced_broker_a_whole_session() -> None:
    image = image_of(broker(1), broker(2, fenced=True))
    sessions = Sessions.activated(image, TIMEOUT_MS, 5_000)
    assert sessions.by_broker[1] == Session(5_000, registered_at=1)
    assert sessions.by_broker[2].last_contact is None
    assert sessions.is_live(1, 5_000 + TIMEOUT_MS)
    assert not sessions.is_live(1, 5_001 + TIMEOUT_MS)
    assert not sessions.is_live(2, 5_000)
