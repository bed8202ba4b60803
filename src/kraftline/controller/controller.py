"""The active controller of a cluster with one voter: decides, appends, answers once committed.

`image` is the state with everything that was appended, committed or not: the next decision stands
on it. Nobody is answered before what the answer stands on is committed.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Container, Sequence
from functools import cached_property
from random import Random
from typing import TYPE_CHECKING, Final, TypeAlias, TypeVar

from kraftline.config.effective import Config
from kraftline.controller.activation import activate
from kraftline.controller.assignments import assign_replicas_to_dirs
from kraftline.controller.controllers import register_controller
from kraftline.controller.decision import Decision
from kraftline.controller.heartbeats import Beating, fence_stale, heartbeat
from kraftline.controller.producer_ids import allocate_producer_ids
from kraftline.controller.registration import Registering, register
from kraftline.controller.sessions import Sessions
from kraftline.controller.tokens import sweep_tokens, token_rules
from kraftline.controller.topic_access import EVERYTHING, TopicAccess
from kraftline.controller.topic_configs import TopicConfigs
from kraftline.controller.topic_deletion import delete_topics
from kraftline.controller.topics import TopicRules, create_topics
from kraftline.metadata.bootstrap import BootstrapMetadata
from kraftline.metadata.features import supported_features
from kraftline.metadata.image import MetadataDelta, MetadataImage
from kraftline.metadata.image.metadata import Provenance
from kraftline.metadata.random_ids import random_uuid
from kraftline.metadata.write_options import Versioned
from kraftline.raft import EmbeddedLog
from kraftline.schema.api.allocate_producer_ids import (
    AllocateProducerIdsRequest,
    AllocateProducerIdsResponse,
)
from kraftline.schema.api.assign_replicas_to_dirs import (
    AssignReplicasToDirsRequest,
    AssignReplicasToDirsResponse,
)
from kraftline.schema.api.broker_heartbeat import BrokerHeartbeatRequest, BrokerHeartbeatResponse
from kraftline.schema.api.broker_registration import (
    BrokerRegistrationRequest,
    BrokerRegistrationResponse,
)
from kraftline.schema.api.controller_registration import (
    ControllerRegistrationRequest,
    ControllerRegistrationResponse,
    Feature,
    Listener,
)
from kraftline.schema.api.create_topics import CreateTopicsRequest, CreateTopicsResponse
from kraftline.schema.api.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse
from kraftline.schema.metadata.abort_transaction_record import AbortTransactionRecord
from kraftline.schema.metadata.begin_transaction_record import BeginTransactionRecord
from kraftline.schema.metadata.end_transaction_record import EndTransactionRecord
from kraftline.schema.metadata.frame import encode_record
from kraftline.schema.metadata.no_op_record import NoOpRecord

# Decisions that few ask for are imported when the first does: a node starts quicker.
if TYPE_CHECKING:
    from kraftline.controller.admin import Admin
    from kraftline.schema.api.alter_client_quotas import (
        AlterClientQuotasRequest,
        AlterClientQuotasResponse,
    )
    from kraftline.schema.api.alter_user_scram_credentials import (
        AlterUserScramCredentialsRequest,
        AlterUserScramCredentialsResponse,
    )
    from kraftline.schema.api.create_acls import CreateAclsRequest, CreateAclsResponse
    from kraftline.schema.api.delete_acls import DeleteAclsRequest, DeleteAclsResponse

_logger = logging.getLogger(__name__)

T = TypeVar("T")
# From the state and the time (ms) to records and an answer.
Decide: TypeAlias = Callable[[MetadataImage, int], Decision[T]]

# What a controller writes at once; more is divided, unless it must take effect together.
_BATCH_RECORDS: Final = 10_000
# A decision holds whole transactions, so their marks say nothing to a state that has all of it.
_MARKS: Final = (BeginTransactionRecord, EndTransactionRecord, AbortTransactionRecord)
_NO_OP: Final = Decision(None, [(NoOpRecord(), 0)])


class Controller:
    """Belongs to the event loop of its log. `clock` gives the time in ms, `monotonic` one that
    never jumps, by which sessions are measured."""

    def __init__(
        self,
        log: EmbeddedLog,
        image: MetadataImage,
        clock: Callable[[], int],
        *,
        config: Config,
        cluster_id: str,
        monotonic: Callable[[], int] = lambda: time.monotonic_ns() // 1_000_000,
    ) -> None:
        self.log = log
        self.image = image
        self.cluster_id = cluster_id
        self.config = config
        self.node_id = config.whole("node.id")
        self.configs = TopicConfigs(config, self.node_id)
        self.rules = TopicRules(
            configs=self.configs,
            partitions=config.whole("num.partitions"),
            replication_factor=config.whole("default.replication.factor"),
        )
        self.sessions = Sessions.activated(
            image, config.whole("broker.session.timeout.ms"), monotonic()
        )
        self._min_isr = config.whole("min.insync.replicas")
        self._idle_ms = config.whole("metadata.max.idle.interval.ms")
        self.tokens = token_rules(config)
        self._sweep_ms = config.whole("delegation.token.expiry.check.interval.ms")
        self._clock = clock
        self._monotonic = monotonic
        self._random = Random()
        self._tasks: list[asyncio.Task[None]] = []

    @cached_property
    def admin(self) -> Admin:
        from kraftline.controller.admin import Admin

        return Admin(self)

    async def run(self, decide: Decide[T]) -> T:
        """Decide on the state as it is now; the answer once it is committed."""
        await self.log.room()
        now = self._clock()
        decision = decide(self.image, now)
        if decision.records:
            self._append_all(decision, now)
        if decision.sessions is not None:
            self.sessions = decision.sessions
        await self.log.commit()
        return decision.response

    async def activate(
        self,
        bootstrap: BootstrapMetadata,
        listeners: Sequence[Listener] = (),
        *,
        in_transaction: bool = False,
    ) -> bool:
        """Become active: seed an empty log, register this controller with its listeners, and do
        from now on what is due by time. Whether the cluster is new."""
        is_new = await self.run(
            lambda image, now: activate(
                image, bootstrap, min_isr=self._min_isr, in_transaction=in_transaction
            )
        )
        await self.register_controller(
            ControllerRegistrationRequest(
                controller_id=self.node_id,
                incarnation_id=random_uuid(),
                listeners=tuple(listeners),
                features=tuple(
                    Feature(name=name, min_supported_version=least, max_supported_version=most)
                    for name, (least, most) in supported_features().items()
                ),
            )
        )
        # A broker of this node was in this process, so one that is said to be up is not.
        await self.expire_session(self.node_id)
        if self._idle_ms > 0:
            self._every(self._idle_ms, self._say_nothing, "controller-no-op")
        self._looked = self._monotonic()
        self._every(self.sessions.timeout_ms // 4, self.look_for_stale, "controller-fencing")
        if self.tokens.secret is not None:
            self._every(self._sweep_ms, self.sweep_tokens, "controller-tokens")
        return is_new

    async def close(self) -> None:
        """Decide nothing more by itself."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._tasks.clear()

    async def look_for_stale(self) -> None:
        """Fence whoever has been silent for a session; done now and then by itself."""
        now = self._monotonic()
        was_away = now - self._looked > self.sessions.timeout_ms // 2
        self._looked = now
        # After a stall of this process nobody could have been heard: they get another chance.
        if not was_away:
            await self._fence_stale()

    async def expire_session(self, broker: int) -> None:
        """Fence a broker as if it had not been heard of for a session."""
        self.sessions = self.sessions.expired(broker)
        await self._fence_stale()

    async def register(self, request: BrokerRegistrationRequest) -> BrokerRegistrationResponse:
        return await self.run(
            lambda image, now: register(
                image,
                request,
                Registering(
                    cluster_id=self.cluster_id,
                    configs=self.configs,
                    sessions=self.sessions,
                    end_offset=self.log.end_offset,
                    now=self._monotonic(),
                ),
            )
        )

    async def heartbeat(self, request: BrokerHeartbeatRequest) -> BrokerHeartbeatResponse:
        return await self.run(
            lambda image, now: heartbeat(
                image,
                request,
                Beating(
                    configs=self.configs,
                    sessions=self.sessions,
                    end_offset=self.log.end_offset,
                    now=self._monotonic(),
                ),
            )
        )

    async def register_controller(
        self, request: ControllerRegistrationRequest
    ) -> ControllerRegistrationResponse:
        return await self.run(lambda image, now: register_controller(image, request))

    async def create_topics(
        self, request: CreateTopicsRequest, access: TopicAccess = EVERYTHING
    ) -> CreateTopicsResponse:
        return await self.run(lambda image, now: create_topics(image, request, self.rules, access))

    async def delete_topics(
        self, request: DeleteTopicsRequest, access: TopicAccess = EVERYTHING
    ) -> DeleteTopicsResponse:
        return await self.run(
            lambda image, now: delete_topics(image, request, self._random, access)
        )

    async def allocate_producer_ids(
        self, request: AllocateProducerIdsRequest
    ) -> AllocateProducerIdsResponse:
        return await self.run(lambda image, now: allocate_producer_ids(image, request))

    async def assign_replicas_to_dirs(
        self, request: AssignReplicasToDirsRequest
    ) -> AssignReplicasToDirsResponse:
        return await self.run(
            lambda image, now: assign_replicas_to_dirs(image, request, self.configs)
        )

    async def alter_scram_credentials(
        self, request: AlterUserScramCredentialsRequest
    ) -> AlterUserScramCredentialsResponse:
        from kraftline.controller.scram import alter_scram_credentials

        return await self.run(lambda image, now: alter_scram_credentials(image, request))

    async def create_acls(self, request: CreateAclsRequest) -> CreateAclsResponse:
        from kraftline.controller.acls import create_acls

        return await self.run(lambda image, now: create_acls(image, request))

    async def delete_acls(self, request: DeleteAclsRequest) -> DeleteAclsResponse:
        from kraftline.controller.acls import delete_acls

        return await self.run(lambda image, now: delete_acls(image, request))

    async def alter_client_quotas(
        self, request: AlterClientQuotasRequest, hosts: Container[str] = ()
    ) -> AlterClientQuotasResponse:
        from kraftline.controller.quotas import alter_client_quotas

        return await self.run(lambda image, now: alter_client_quotas(image, request, hosts))

    def _append_all(self, decision: Decision[T], now: int) -> None:
        size = len(decision.records) if decision.is_atomic else _BATCH_RECORDS
        for start in range(0, len(decision.records), size):
            self._append(decision.records[start : start + size], now)

    def _append(self, records: Sequence[Versioned], now: int) -> None:
        # Replayed first: what cannot be replayed must not get into the log.
        delta = MetadataDelta(self.image)
        for message, _ in records:
            if not isinstance(message, _MARKS):
                delta.replay(message)
        appended = self.log.append([encode_record(*each) for each in records], timestamp=now)
        self.image = delta.apply(Provenance(appended.end_offset - 1, appended.epoch, now, True))

    async def _fence_stale(self) -> None:
        while True:
            fenced = await self.run(
                lambda image, now: fence_stale(
                    image, self.configs, self.sessions, self._monotonic()
                )
            )
            if fenced is None:
                return
            _logger.warning("broker %d is fenced: its session has ended", fenced)

    async def sweep_tokens(self) -> None:
        """Remove delegation tokens that are over; done now and then by itself."""
        await self.run(sweep_tokens)

    async def _say_nothing(self) -> None:
        await self.run(lambda image, now: _NO_OP)

    def _every(self, interval_ms: int, do: Callable[[], Awaitable[None]], name: str) -> None:
        async def again_and_again() -> None:
            while True:
                await asyncio.sleep(interval_ms / 1000)
                await do()

        task = asyncio.create_task(again_and_again(), name=name)
        task.add_done_callback(_tell_why)
        self._tasks.append(task)


def _tell_why(task: asyncio.Task[None]) -> None:
    if not task.cancelled() and task.exception() is not None:
        _logger.error("%s ended: %s", task.get_name(), task.exception())
