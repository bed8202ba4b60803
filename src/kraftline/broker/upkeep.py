"""What logs need again and again: flushes, retention, checkpoints, forgetting silent producers.

All of it in threads, one to a log directory, so that a slow disk holds up neither the event loop
nor the others. What fails is said and tried again the next time; a directory that went offline is
left alone.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from kraftline.config.effective import Config
from kraftline.storage.log import DirectoryOffline, LogClosed, Logs, StorageFailed

_logger = logging.getLogger(__name__)

_REMOVAL_SECONDS: Final = 1.0
_LONGEST: Final = 365 * 24 * 3600.0
_Work = Callable[[Logs], object]


class Upkeep:
    """Of all log directories of a broker; intervals are Kafka's configs."""

    def __init__(self, directories: tuple[Logs, ...], config: Config) -> None:
        def seconds(name: str) -> float:
            return min(config.whole(name) / 1000, _LONGEST)

        at_first = seconds("log.initial.task.delay.ms")
        self._directories = directories
        self._rounds: tuple[tuple[float, float, _Work], ...] = (
            (at_first, seconds("log.flush.scheduler.interval.ms"), Logs.flush_due),
            (at_first, seconds("log.retention.check.interval.ms"), Logs.delete_old),
            (
                at_first,
                seconds("log.flush.offset.checkpoint.interval.ms"),
                Logs.checkpoint_recovery_points,
            ),
            (
                at_first,
                seconds("log.flush.start.offset.checkpoint.interval.ms"),
                Logs.checkpoint_start_offsets,
            ),
            (
                0,
                seconds("replica.high.watermark.checkpoint.interval.ms"),
                Logs.checkpoint_high_watermarks,
            ),
            (
                at_first,
                seconds("producer.id.expiration.check.interval.ms"),
                Logs.expire_producers,
            ),
            (0, _REMOVAL_SECONDS, Logs.remove_deleted),
        )
        self._threads: list[ThreadPoolExecutor] = []
        self._tasks: list[asyncio.Task[None]] = []

    def start(self, on_failure: Callable[[Logs], None]) -> None:
        """`on_failure` is called in the event loop when a directory has gone offline."""
        loop = asyncio.get_running_loop()
        for logs in self._directories:
            logs.disk.on_failure = _told(loop, on_failure, logs)
            threads = ThreadPoolExecutor(1, thread_name_prefix="upkeep")
            self._threads.append(threads)
            for delay, interval, work in self._rounds:
                self._tasks.append(
                    asyncio.create_task(_again_and_again(threads, delay, interval, work, logs))
                )

    async def stop(self) -> None:
        """What runs comes to its end."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._tasks.clear()
        for threads in self._threads:
            await asyncio.to_thread(threads.shutdown)
        for logs in self._directories:
            logs.disk.on_failure = None


def _told(
    loop: asyncio.AbstractEventLoop, on_failure: Callable[[Logs], None], logs: Logs
) -> Callable[[DirectoryOffline], None]:
    """What a disk calls when it fails, in whatever thread that is."""

    def failed(problem: DirectoryOffline) -> None:
        _logger.error("%s", problem)
        loop.call_soon_threadsafe(on_failure, logs)

    return failed


async def _again_and_again(
    threads: ThreadPoolExecutor, delay: float, interval: float, work: _Work, logs: Logs
) -> None:
    loop = asyncio.get_running_loop()
    await asyncio.sleep(delay)
    while logs.disk.failure is None:
        await loop.run_in_executor(threads, _attempt, work, logs)
        await asyncio.sleep(interval)


def _attempt(work: _Work, logs: Logs) -> None:
    try:
        work(logs)
    except LogClosed:
        return  # deleted meanwhile
    except StorageFailed as problem:
        _logger.error("%s", problem)
    except Exception:
        _logger.exception("upkeep of %s failed", logs.path)
