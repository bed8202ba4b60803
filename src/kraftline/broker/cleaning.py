"""The threads that compact logs: started with the first image, stopped before logs are closed.

Settings that change while the broker runs take effect with new threads, as in Kafka: those that
run stop at the next step, and begin again what they had not finished.
"""

from __future__ import annotations

import asyncio
import threading

from kraftline.config.effective import Config
from kraftline.storage.cleaner.cleaner import Cleaner, CleanerSettings, run_thread
from kraftline.storage.log import Logs


def cleaner_settings(config: Config) -> CleanerSettings:
    def real(name: str) -> float:
        value = config[name]
        assert isinstance(value, (int, float)), name
        return float(value)

    return CleanerSettings(
        threads=config.whole("log.cleaner.threads"),
        dedupe_buffer_size=config.whole("log.cleaner.dedupe.buffer.size"),
        dedupe_buffer_load_factor=real("log.cleaner.io.buffer.load.factor"),
        io_buffer_size=config.whole("log.cleaner.io.buffer.size"),
        io_max_bytes_per_second=real("log.cleaner.io.max.bytes.per.second"),
        backoff_ms=config.whole("log.cleaner.backoff.ms"),
    )


class CleanerThreads:
    """Of all log directories of a broker. `cleaner` is None where log.cleaner.enable says so."""

    def __init__(self, directories: tuple[Logs, ...], config: Config) -> None:
        self.cleaner: Cleaner | None = None
        self._directories = directories
        self._enabled = config["log.cleaner.enable"] is True
        self._settings = cleaner_settings(config)
        self._running: list[threading.Thread] = []
        self._ending: list[threading.Thread] = []
        self._stop = threading.Event()

    @property
    def dead(self) -> int:
        """How many threads have ended without being told to."""
        return sum(not each.is_alive() for each in self._running)

    def start(self) -> None:
        if self._enabled:
            self.cleaner = Cleaner(self._directories, self._settings)
            self._begin(self.cleaner)

    def reconfigure(self, config: Config) -> None:
        """Settings as they are now."""
        settings = cleaner_settings(config)
        if settings == self._settings:
            return
        self._settings = settings
        if self.cleaner is not None:
            self.cleaner.reconfigure(settings)
            self._end()
            self._begin(self.cleaner)

    async def stop(self) -> None:
        """What is being cleaned is left as it is."""
        self._end()
        ending, self._ending = self._ending, []
        for thread in ending:
            await asyncio.to_thread(thread.join)

    def _begin(self, cleaner: Cleaner) -> None:
        self._stop = threading.Event()
        for number in range(self._settings.threads):
            name = f"log-cleaner-{number}"
            # Not waited for where nobody stops the broker: a cleaning may end at any moment.
            thread = threading.Thread(
                target=run_thread, args=(cleaner, self._stop, name), name=name, daemon=True
            )
            thread.start()
            self._running.append(thread)

    def _end(self) -> None:
        self._stop.set()
        self._ending = [each for each in self._ending if each.is_alive()] + self._running
        self._running = []
