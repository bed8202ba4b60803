"""Stories of a loader, and what ours tells in them, in the form of `LoaderStories.java`."""

from __future__ import annotations

import asyncio
import tempfile
from base64 import b64decode, b64encode
from collections.abc import Awaitable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, TypeAlias

from kraftline.metadata.image import MetadataDelta, MetadataImage, Provenance
from kraftline.metadata.image.metadata import PARTS
from kraftline.metadata.loader import (
    LeaderAndEpoch,
    LogDeltaManifest,
    Manifest,
    MetadataFault,
    MetadataLoader,
    MetadataPublisher,
    PublisherRefused,
    SnapshotGenerator,
    SnapshotsDisabled,
)
from kraftline.metadata.loader.snapshot_source import name_of
from kraftline.metadata.write_options import Versioned
from kraftline.records.batch import Batch
from kraftline.records.control import build_control_batch
from kraftline.records.framing import batches
from kraftline.records.record import Record
from kraftline.records.write import build_batch
from kraftline.schema.metadata.frame import encode_record
from kraftline.schema.types import Message
from kraftline.storage.names import SnapshotId, format_snapshot
from kraftline.storage.snapshot_file import SnapshotReader, SnapshotWriter
from tests.metadata.replaying import written
from tests.oracle.lines import Json

Told: TypeAlias = "dict[str, Any]"
Entries: TypeAlias = "Sequence[Message | Versioned | bytes]"

GENERATOR = "SnapshotGenerator"
# What Kafka's metric says before there is a version.
_NO_VERSION = 7
_NEVER = 2**63 - 1


class Story:
    """Steps, and the log that they commit; its high watermark follows unless it was set."""

    def __init__(self, *, max_bytes: int | None = None, max_interval_ms: int = 0) -> None:
        self.steps: list[Json] = []
        self.limits: dict[str, Json] = {"maxIntervalMs": max_interval_ms}
        if max_bytes is not None:
            self.limits["maxBytes"] = max_bytes
        # The first and last offset of each batch, its epoch and its time.
        self.batches: list[tuple[int, int, int, int]] = []
        self.offset = 0
        self.epoch = 1
        self.follows = True

    @property
    def json(self) -> dict[str, Json]:
        return {"steps": self.steps, "generator": self.limits}

    def batch(self, *entries: Message | Versioned | bytes) -> bytes:
        """The next batch of the log: records, or values as they are."""
        base, time = self._next(len(entries))
        records = [Record(base + n, time, None, value_of(entry)) for n, entry in enumerate(entries)]
        return build_batch(records, partition_leader_epoch=self.epoch)

    def control(self, *messages: Message) -> bytes:
        """The next batch of the log, of control records."""
        base, time = self._next(len(messages))
        return build_control_batch(
            messages, base_offset=base, timestamp=time, partition_leader_epoch=self.epoch
        )

    def _next(self, count: int) -> tuple[int, int]:
        base, self.offset = self.offset, self.offset + count
        time = 1000 + 10 * base
        self.batches.append((base, self.offset - 1, self.epoch, time))
        return base, time

    def commit(self, *parts: bytes | Entries) -> None:
        """One commit of batches; a list is the next one."""
        raw = b"".join(each if isinstance(each, bytes) else self.batch(*each) for each in parts)
        high: dict[str, Json] = {"high": self.offset} if self.follows else {}
        self._step("commit", data=b64encode(raw).decode(), **high)

    def snapshot(
        self, end: int, *entries: Message | Versioned, epoch: int = 2, kraft_version: int = 0
    ) -> None:
        """A snapshot that ends before an offset; the log goes on there."""
        raw = snapshot_bytes(SnapshotId(end, epoch), entries, kraft_version)
        self.load(end, epoch, raw)

    def load(self, end: int, epoch: int, raw: bytes) -> None:
        self.offset = max(end, self.offset)
        high: dict[str, Json] = {"high": self.offset} if self.follows else {}
        self._step("snapshot", data=b64encode(raw).decode(), offset=end, epoch=epoch, **high)

    def leader(self, id: int | None, epoch: int) -> None:
        self._step("leader", id=id, epoch=epoch)

    def install(self, *names: str) -> None:
        self._step("install", names=list(names))

    def remove(self, name: str) -> None:
        self._step("remove", name=name)

    def fails(self, name: str, where: str = "") -> None:
        """From now on a publisher fails in "update", "controller" or "close"; or no more."""
        self._step("fails", **{"name": name, "in": where})

    def high(self, offset: int | None) -> None:
        """Set the high watermark, which follows no more."""
        self.follows = False
        self._step("high", high=offset)

    def tick(self, ms: int) -> None:
        self._step("tick", ms=ms)

    def emitter(self, how: str) -> None:
        """It is "ready", "held" in the middle of a snapshot, or "fails"."""
        self._step("emitter", how=how)

    def disable(self, reason: str) -> None:
        self._step("disable", reason=reason)

    def shutdown(self) -> None:
        self._step("shutdown")

    def close(self) -> None:
        """The loader takes nothing more, and ends."""
        self._step("close")

    def together(self, count: int) -> None:
        """The last steps are all in the queue before the first is handled."""
        steps, self.steps = self.steps[-count:], self.steps[:-count]
        self._step("together", steps=steps)

    def _step(self, do: str, **more: Json) -> None:
        self.steps.append({"do": do, **more})


def value_of(entry: Message | Versioned | bytes) -> bytes:
    if isinstance(entry, bytes):
        return entry
    message, version = entry if isinstance(entry, tuple) else (entry, entry.SPEC.versions.last)
    return encode_record(message, version)


def snapshot_bytes(
    id: SnapshotId,
    entries: Sequence[Message | Versioned],
    kraft_version: int = 0,
    max_batch_bytes: int = 500,
) -> bytes:
    with (
        tempfile.TemporaryDirectory() as folder,
        SnapshotWriter(
            folder,
            id,
            last_contained_log_timestamp=500 + id.end_offset,
            kraft_version=kraft_version,
            clock=lambda: 77,
            max_batch_bytes=max_batch_bytes,
        ) as writer,
    ):
        for entry in entries:
            writer.append([value_of(entry)])
        writer.freeze()
        return Path(writer.path).read_bytes()


def by_kraftline(story: Story) -> list[Told]:
    """What our loader and generator tell in a story."""
    with (
        tempfile.TemporaryDirectory() as folder,
        asyncio.Runner(loop_factory=StillLoop) as runner,
    ):
        return runner.run(_Telling(story, Path(folder)).run())


class StillLoop(asyncio.SelectorEventLoop):
    """Its clock moves when it is told to."""

    now = 1.0

    def time(self) -> float:
        return self.now


class _Telling:
    def __init__(self, story: Story, folder: Path) -> None:
        self.told: list[Told] = []
        self._story = story
        self._folder = folder
        self._high: int | None = None
        self._recorders: dict[str, _Recorder] = {}
        self._asked: list[asyncio.Task[None]] = []
        self._aside: list[Told] = []
        self._closing = False
        self._how = "ready"
        self._held = asyncio.Event()
        self._now = 0

    async def run(self) -> list[Told]:
        self._held.set()
        limits: Any = self._story.limits
        self._loader = MetadataLoader(high_watermark=lambda: self._high, faults=_Faults(self.told))
        self._generator = SnapshotGenerator(
            self,
            _Faults(self._aside),
            max_bytes=limits.get("maxBytes", _NEVER),
            max_interval_ms=limits["maxIntervalMs"],
            disabled=SnapshotsDisabled(),
            clock_ns=lambda: self._now,
        )
        with ExitStack() as stack:
            self._open = stack
            async with self._loader:
                steps: Any = self._story.steps
                for number, step in enumerate(steps):
                    self._take(step)
                    await self._settle()
                    self._after(number)
                self._held.set()
                await self._settle()
            await self._generator.close()
        return self.told

    def _take(self, step: Any) -> None:
        loader = self._loader
        self._high = step.get("high", self._high)
        match step["do"]:
            case "commit":
                self._ask(loader.handle_commit(checked(b64decode(step["data"]))))
            case "snapshot":
                path = self._folder / format_snapshot(SnapshotId(step["offset"], step["epoch"]))
                path.unlink(missing_ok=True)
                path.write_bytes(b64decode(step["data"]))
                reader = self._open.enter_context(SnapshotReader(path))
                self._ask(loader.handle_load_snapshot(reader))
            case "leader":
                self._ask(loader.handle_leader_change(step["id"], step["epoch"]))
            case "install":
                publishers = list(map(self._publisher, step["names"]))
                self._ask(loader.install_publishers(publishers))
            case "remove":
                self._ask(loader.remove_and_close_publisher(self._publisher(step["name"])))
            case "fails":
                self._publisher(step["name"])
                self._recorders[step["name"]].failing = step["in"]
            case "tick":
                self._now += step["ms"] * 1_000_000
                event_loop = asyncio.get_running_loop()
                assert isinstance(event_loop, StillLoop)
                event_loop.now += step["ms"] / 1000
            case "emitter":
                self._how = step["how"]
                self._held.set()
                if self._how == "held":
                    self._held.clear()
            case "disable":
                self._generator.disabled.disable(step["reason"])
            case "shutdown":
                self._generator.begin_shutdown()
            case "close":
                self._closing = True
                self._ask(self._begin_shutdown())
            case "together":
                for each in step["steps"]:
                    self._take(each)
            case do:
                assert do == "high"

    def _ask(self, call: Awaitable[None]) -> None:
        async def ask() -> None:
            await call

        self._asked.append(asyncio.create_task(ask()))

    async def _begin_shutdown(self) -> None:
        self._loader.begin_shutdown()

    def _publisher(self, key: str) -> MetadataPublisher:
        if key == GENERATOR:
            return self._generator
        return self._recorders.setdefault(key, _Recorder(key, self.told))

    async def _settle(self) -> None:
        for _ in range(3):
            await asyncio.sleep(0)
            await (self._loader.close() if self._closing else self._loader.drained())
        for each in await asyncio.gather(*self._asked, return_exceptions=True):
            if isinstance(each, BaseException):
                assert isinstance(each, PublisherRefused)
                self.told.append({"refused": str(each)})
        self._asked.clear()
        if self._how != "held":
            await self._generator.idle()
        else:
            await asyncio.sleep(0)
        self.told += self._aside
        self._aside.clear()

    def _after(self, step: int) -> None:
        metrics = self._loader.metrics
        version = metrics.metadata_version
        self.told.append(
            {
                "after": step,
                "applied": metrics.last_applied_offset,
                "snapshots": metrics.handled_snapshots,
                "version": _NO_VERSION if version is None else version.level,
                "controller": metrics.controller_id,
                "levels": dict(sorted(metrics.finalized_levels.items())),
                "batches": metrics.batch_sizes.count,
                "records": metrics.batch_sizes.total,
            }
        )

    async def maybe_emit(self, image: MetadataImage) -> None:
        self._aside.append({"emit": name_of(image.provenance)})
        await self._held.wait()
        if self._how == "fails":
            raise OSError("no space left")


def checked(raw: bytes) -> Iterator[Batch]:
    """The batches of a log, as whoever keeps it hands them on."""
    for batch in batches(raw):
        batch.check()
        yield batch


class _Faults:
    def __init__(self, told: list[Told]) -> None:
        self._told = told

    def handle(self, fault: MetadataFault) -> None:
        self._told.append({"fault": fault.message})


class _Recorder(MetadataPublisher):
    def __init__(self, key: str, told: list[Told]) -> None:
        self._key = key
        self._told = told
        self.failing = ""

    @property
    def name(self) -> str:
        return self._key.partition("#")[0]

    def on_metadata_update(
        self, delta: MetadataDelta, image: MetadataImage, manifest: Manifest
    ) -> None:
        from_log = isinstance(manifest, LogDeltaManifest)
        told: Told = {
            "to": self._key,
            "update": "LOG_DELTA" if from_log else "SNAPSHOT",
            "provenance": provenance(manifest.provenance),
            "ends": provenance(image.provenance),
            "begins": delta.image.offset,
        }
        if isinstance(manifest, LogDeltaManifest):
            told["batches"], told["bytes"] = manifest.batches, manifest.bytes
            told["leader"] = leader(manifest.leader)
        told["parts"] = sorted(part for part in PARTS if getattr(delta, part) is not None)
        told["image"] = written(image)
        self._told.append(told)
        self._fail_if("update")

    def on_controller_change(self, new: LeaderAndEpoch) -> None:
        self._told.append({"to": self._key, "leader": leader(new)})
        self._fail_if("controller")

    async def close(self) -> None:
        self._told.append({"to": self._key, "closed": True})
        self._fail_if("close")

    def _fail_if(self, where: str) -> None:
        if self.failing == where:
            raise RuntimeError("no room")


def provenance(it: Provenance) -> list[int | bool]:
    return [it.last_offset, it.last_epoch, it.last_log_time_ms, it.batch_aligned]


def leader(it: LeaderAndEpoch) -> list[int | None]:
    return [it.leader_id, it.epoch]
