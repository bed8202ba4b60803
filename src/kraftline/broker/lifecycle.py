"""The broker's life in the cluster: it registers, sends heartbeats, serves, and takes its leave.

    NOT_RUNNING -> STARTING -> RECOVERY -> RUNNING -> PENDING_CONTROLLED_SHUTDOWN -> SHUTTING_DOWN
       start()     caught up   unfenced    shut_down()     may go

One task asks the controller, so at most one request is under way, and it alone writes the state.
What changes the state asks at once; else the next heartbeat is due after the interval. The broker
wants to be fenced until it is ready, so that no client is sent to one that cannot answer yet. One
that cannot tell in time that it is there, or that a log directory has failed, does not go on.
"""

from __future__ import annotations

import asyncio
import enum
import logging
from collections.abc import Awaitable, Callable, Collection

from kraftline.controller.controller import Controller
from kraftline.errors import KraftlineError
from kraftline.schema.api.broker_heartbeat import BrokerHeartbeatRequest, BrokerHeartbeatResponse
from kraftline.schema.api.broker_registration import BrokerRegistrationRequest
from kraftline.schema.api.error_codes import ErrorCode
from kraftline.schema.uuids import Uuid

_logger = logging.getLogger(__name__)

# How soon to ask again while the broker reads up to its registration, and while it waits to go:
# both take no longer than a few turns of the loop in one process.
_SOON = 0.002
# How long to wait to be let go (s), as Kafka's brokers do.
_LONGEST_LEAVE = 300


class BrokerState(enum.IntEnum):
    """By Kafka's numbers."""

    NOT_RUNNING = 0
    STARTING = 1
    RECOVERY = 2
    RUNNING = 3
    PENDING_CONTROLLED_SHUTDOWN = 6
    SHUTTING_DOWN = 7


class NotRegistered(KraftlineError):
    """The controller did not take the broker in time."""


class DirectoryNotTold(KraftlineError):
    """A log directory failed, and the controller could not be told in time."""


class Lifecycle:
    """`applied` gives the offset of the last metadata that this broker has acted on; `cordoned`
    are log directories that shall get no new replicas. `failure` is what keeps the broker from
    going on."""

    def __init__(
        self,
        controller: Controller,
        registration: BrokerRegistrationRequest,
        applied: Callable[[], int],
        interval_ms: int,
        *,
        registration_timeout_ms: int = 60_000,
        directory_timeout_ms: int = 30_000,
        cordoned: Collection[Uuid] = (),
    ) -> None:
        self.state = BrokerState.NOT_RUNNING
        self.broker_epoch = -1
        self._controller = controller
        self._registration = registration
        self._applied = applied
        self._interval = interval_ms / 1000
        self._timeout = registration_timeout_ms / 1000
        self.failure: KraftlineError | None = None
        self._directory_timeout = directory_timeout_ms / 1000
        self._cordoned = tuple(cordoned)
        self._offline: set[Uuid] = set()
        self._untold: dict[Uuid, asyncio.TimerHandle] = {}
        self._refused = "no answer"  # why the last registration was
        self._is_registered = False
        self._is_ready = False
        self._wants_fence = False
        self._is_fenced = False  # though it runs
        self._wake = asyncio.Event()
        self._changed = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    async def start(self, recover: Callable[[], Awaitable[None]] | None = None) -> None:
        """Register, and return once the broker is unfenced. `recover` is what must be done before
        that, with all metadata known. NotRegistered says that the controller would not have it."""
        self._become(BrokerState.STARTING)
        loop = asyncio.get_running_loop()
        self._deadline = loop.time() + self._timeout
        self._task = asyncio.create_task(self._live(), name="broker-lifecycle")
        await self._reach(BrokerState.RECOVERY)
        if recover is not None:
            await recover()
        self._is_ready = True
        self._wake.set()
        await self._reach(BrokerState.RUNNING)

    async def shut_down(self, *, is_controlled: bool = True) -> None:
        """Leave the cluster: leaderships are handed over first, and the broker is fenced. Not
        controlled, or before the broker ran: just say nothing more."""
        task, self._task = self._task, None
        for each in self._untold.values():
            each.cancel()
        if task is None:
            self._become(BrokerState.SHUTTING_DOWN)
            return
        if is_controlled and self.state is BrokerState.RUNNING and not task.done():
            self._become(BrokerState.PENDING_CONTROLLED_SHUTDOWN)
            self._wake.set()
            await asyncio.wait([task], timeout=_LONGEST_LEAVE)
        task.cancel()
        await asyncio.wait([task])
        if not task.cancelled() and task.exception() is not None:
            _logger.warning("the broker had left the cluster: %s", task.exception())
        self._become(BrokerState.SHUTTING_DOWN)

    def fence(self, wanted: bool) -> None:
        """Whether the broker wants to be fenced though it is ready."""
        self._wants_fence = wanted
        self._wake.set()

    def directory_failed(self, directory: Uuid) -> None:
        """Tell the controller that replicas in a log directory are gone. Where it does not answer
        in time the broker does not go on: others would still be sent to what it lost."""
        if directory in self._offline:
            return
        self._offline.add(directory)
        loop = asyncio.get_running_loop()
        self._untold[directory] = loop.call_later(self._directory_timeout, self._give_up, directory)
        self._wake.set()

    def _give_up(self, directory: Uuid) -> None:
        self.failure = DirectoryNotTold(
            f"Shutting down because couldn't communicate offline log dir {directory} with "
            "controllers"
        )

    def cordon(self, directories: Collection[Uuid]) -> None:
        """Tell the controller which directories shall get no new replicas."""
        if set(directories) != set(self._cordoned):
            self._cordoned = tuple(directories)
            self._wake.set()

    def register_again(self) -> None:
        """What the controller knows of this broker is out of date."""
        self._is_registered = False
        self._wake.set()

    async def _reach(self, state: BrokerState) -> None:
        """Return once the state is reached; what ended the task before that."""
        task = self._task
        if task is None:
            raise NotRegistered("the broker was shut down while it started")
        while self.state < state:
            self._changed.clear()
            changed = asyncio.create_task(self._changed.wait())
            await asyncio.wait([task, changed], return_when=asyncio.FIRST_COMPLETED)
            changed.cancel()
            if task.done():
                task.result()
                raise NotRegistered("the broker was shut down while it started")

    def _become(self, state: BrokerState) -> None:
        if state is not self.state:
            broker = self._registration.broker_id
            _logger.info("broker %d: %s -> %s", broker, self.state.name, state.name)
            self.state = state
            self._changed.set()

    async def _live(self) -> None:
        while self.state < BrokerState.SHUTTING_DOWN:
            self._wake.clear()
            pause = await (self._beat() if self._is_registered else self._register())
            if not pause:
                continue
            try:
                async with asyncio.timeout(pause):
                    await self._wake.wait()
            except TimeoutError:
                continue

    async def _register(self) -> float:
        """Register; how long to wait before the next request."""
        is_first = self.state is BrokerState.STARTING
        try:
            async with asyncio.timeout_at(self._deadline if is_first else None):
                response = await self._controller.register(self._registration)
        except TimeoutError:
            raise _unregistered(self._refused) from None
        if response.error_code == ErrorCode.NONE:
            self.broker_epoch = response.broker_epoch
            self._is_registered = True
            return 0
        self._refused = ErrorCode(response.error_code).name
        _logger.warning(
            "broker %d cannot register: %s", self._registration.broker_id, self._refused
        )
        left = self._deadline - asyncio.get_running_loop().time()
        if is_first and left <= 0:
            raise _unregistered(self._refused)
        return min(self._interval, max(left, _SOON))

    async def _beat(self) -> float:
        """Send a heartbeat; how long to wait before the next request."""
        request = self._heartbeat()
        response = await self._controller.heartbeat(request)
        if response.error_code != ErrorCode.NONE:
            _logger.warning("heartbeat refused: %s", ErrorCode(response.error_code).name)
            if self._is_forgotten(response.error_code):
                self._become(BrokerState.SHUTTING_DOWN)
                return 0
            return self._interval
        for directory in self._untold.keys() & set(request.offline_log_dirs):
            self._untold.pop(directory).cancel()
        return self._act_on(response)

    def _is_forgotten(self, error: int) -> bool:
        """Does it want to leave a cluster that does not know it any more? There is nothing that it
        could hand over."""
        is_leaving = self.state is BrokerState.PENDING_CONTROLLED_SHUTDOWN
        return is_leaving and error == ErrorCode.STALE_BROKER_EPOCH

    def _heartbeat(self) -> BrokerHeartbeatRequest:
        return BrokerHeartbeatRequest(
            broker_id=self._registration.broker_id,
            broker_epoch=self.broker_epoch,
            current_metadata_offset=self._applied(),
            want_fence=self._wants_fence or not self._is_ready,
            want_shut_down=self.state is BrokerState.PENDING_CONTROLLED_SHUTDOWN,
            offline_log_dirs=tuple(sorted(self._offline)),
            cordoned_log_dirs=None if self.state is BrokerState.STARTING else self._cordoned,
        )

    def _act_on(self, response: BrokerHeartbeatResponse) -> float:
        match self.state:
            case BrokerState.STARTING:
                if not response.is_caught_up:
                    return _SOON
                # At once again: the controller is told of cordoned directories.
                self._become(BrokerState.RECOVERY)
                return 0
            case BrokerState.RECOVERY:
                if not response.is_fenced:
                    self._become(BrokerState.RUNNING)
                elif self._is_ready:
                    return _SOON
            case BrokerState.RUNNING:
                self._note_fencing(response.is_fenced)
            case BrokerState.PENDING_CONTROLLED_SHUTDOWN:
                if not response.should_shut_down:
                    return _SOON
                self._become(BrokerState.SHUTTING_DOWN)
                return 0
        return self._interval

    def _note_fencing(self, is_fenced: bool) -> None:
        """It makes no difference to the state, but to everybody else."""
        if is_fenced != self._is_fenced:
            self._is_fenced = is_fenced
            broker = self._registration.broker_id
            if is_fenced:
                _logger.warning("broker %d is fenced: it leads nothing", broker)
            else:
                _logger.info("broker %d is unfenced", broker)


def _unregistered(reason: str) -> NotRegistered:
    return NotRegistered(
        f"Shutting down because we were unable to register with the controller quorum: {reason}"
    )
