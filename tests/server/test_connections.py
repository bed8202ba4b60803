"""Frames over real sockets: order, limits, files, and clients that misbehave."""

from __future__ import annotations

import asyncio
import os
import socket
import struct
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import uvloop

from kraftline.server.connection import CloseConnection, Connection, Handle
from kraftline.server.parts import FileRange
from kraftline.server.server import Limits, Listener

LOOPS: list[Callable[[], asyncio.AbstractEventLoop]] = [
    asyncio.new_event_loop,
    uvloop.new_event_loop,
]


def echo(frame: memoryview, _: Connection) -> list[bytes | FileRange]:
    return [bytes(frame)]


@asynccontextmanager
async def listening(handle: Handle, limits: Limits | None = None) -> AsyncIterator[Listener]:
    listener = Listener("PLAINTEXT", "127.0.0.1", 0, handle, limits=limits)
    await listener.start()
    try:
        yield listener
    finally:
        await listener.stop()


async def connected(listener: Listener) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    return await asyncio.open_connection("127.0.0.1", listener.port, limit=1 << 26)


def framed(data: bytes) -> bytes:
    return struct.pack(">i", len(data)) + data


async def answer(reader: asyncio.StreamReader) -> bytes:
    (size,) = struct.unpack(">i", await reader.readexactly(4))
    return await reader.readexactly(size)


@pytest.fixture(params=LOOPS, ids=["asyncio", "uvloop"])
def run(request: pytest.FixtureRequest) -> Callable[..., None]:
    def runner(work: Callable[[], object]) -> None:
        with asyncio.Runner(loop_factory=request.param) as loop:
            loop.run(asyncio.wait_for(work(), 30))  # type: ignore[arg-type]  # a coroutine

    return runner


def test_pipelined_requests_are_answered_in_order(run: Callable[..., None]) -> None:
    async def slow_first(frame: bytes) -> list[bytes | FileRange]:
        await asyncio.sleep(0.05 if frame.endswith(b"0") else 0)
        return [frame]

    async def work() -> None:
        async with listening(lambda frame, _: slow_first(bytes(frame))) as listener:
            reader, writer = await connected(listener)
            writer.write(b"".join(framed(b"request %d" % n) for n in range(30)))
            assert [await answer(reader) for _ in range(30)] == [
                b"request %d" % n for n in range(30)
            ]
            writer.close()

    run(work)


def test_one_connection_does_not_hold_up_another(run: Callable[..., None]) -> None:
    held = asyncio.Event()

    async def wait(frame: bytes) -> list[bytes | FileRange]:
        if frame == b"wait":
            await held.wait()
        return [frame]

    async def work() -> None:
        async with listening(lambda frame, _: wait(bytes(frame))) as listener:
            slow, slow_writer = await connected(listener)
            quick, quick_writer = await connected(listener)
            slow_writer.write(framed(b"wait"))
            quick_writer.write(framed(b"now"))
            assert await answer(quick) == b"now"
            held.set()
            assert await answer(slow) == b"wait"
            slow_writer.close()
            quick_writer.close()

    run(work)


def test_ranges_of_files_arrive_whole_between_bytes(
    run: Callable[..., None], tmp_path: Path
) -> None:
    data = os.urandom(5_000_000)
    (tmp_path / "segment").write_bytes(data)
    released = []

    async def work() -> None:
        descriptor = os.open(tmp_path / "segment", os.O_RDONLY)

        def handle(frame: memoryview, _: Connection) -> list[bytes | FileRange]:
            start, length = struct.unpack(">ii", frame)
            piece = FileRange(descriptor, start, length, lambda: released.append(start))
            return [b"<", piece, b"|", piece, b">"]

        async with listening(handle) as listener:
            reader, writer = await connected(listener)
            asked = [(7, 4_900_000), (0, 10), (100, 70_000), (4_999_999, 1), (3, 2_000_000)]
            writer.write(b"".join(framed(struct.pack(">ii", *each)) for each in asked))
            for start, length in asked:
                piece = data[start : start + length]
                assert await answer(reader) == b"<" + piece + b"|" + piece + b">"
            writer.close()
        os.close(descriptor)
        assert len(released) == 2 * len(asked)

    run(work)


def test_a_file_that_was_cut_ends_the_connection(run: Callable[..., None], tmp_path: Path) -> None:
    (tmp_path / "segment").write_bytes(bytes(100_000))

    async def work() -> None:
        descriptor = os.open(tmp_path / "segment", os.O_RDONLY)
        for length in (100_001, 2_000_000):
            piece = FileRange(descriptor, 0, length)
            async with listening(lambda frame, _, piece=piece: [piece]) as listener:  # type: ignore[misc]
                reader, writer = await connected(listener)
                writer.write(framed(b"x"))
                with pytest.raises((asyncio.IncompleteReadError, ConnectionError)):
                    await answer(reader)
                writer.close()
        os.close(descriptor)

    run(work)


@pytest.mark.parametrize("size", [-1, 1001, 2**31 - 1])
def test_a_frame_of_a_hostile_length_ends_the_connection(
    run: Callable[..., None], size: int
) -> None:
    async def work() -> None:
        async with listening(echo, Limits(request_bytes=1000)) as listener:
            reader, writer = await connected(listener)
            writer.write(framed(b"fine") + struct.pack(">i", size))
            assert await answer(reader) == b"fine"
            assert await reader.read() == b""
            writer.close()

    run(work)


def test_http_on_the_port_is_closed(run: Callable[..., None]) -> None:
    async def work() -> None:
        async with listening(echo) as listener:
            reader, writer = await connected(listener)
            writer.write(b"GET / HTTP/1.1\r\nHost: here\r\n\r\n")
            assert await reader.read() == b""
            writer.close()

    run(work)


def test_a_client_that_reads_no_answers_costs_little_and_stops_nobody(
    run: Callable[..., None],
) -> None:
    made = 0

    def handle(frame: memoryview, _: Connection) -> list[bytes | FileRange]:
        nonlocal made
        made += 1
        return [bytes(100_000)]

    async def work() -> None:
        async with listening(handle) as listener:
            mute = socket.create_connection(("127.0.0.1", listener.port))
            mute.setblocking(False)
            sent = 0
            for _ in range(200):
                try:
                    sent += mute.send(framed(b"x" * 1000))
                except BlockingIOError:
                    await asyncio.sleep(0.01)
            await asyncio.sleep(0.1)
            assert made < 150  # what fits into the sockets' buffers, not all that was asked
            reader, writer = await connected(listener)
            writer.write(framed(b"hello"))
            assert len(await answer(reader)) == 100_000
            writer.close()
            mute.close()

    run(work)


def test_too_many_connections_of_one_address_are_sent_away(run: Callable[..., None]) -> None:
    async def work() -> None:
        async with listening(echo, Limits(connections_of_address=2)) as listener:
            kept = [await connected(listener) for _ in range(2)]
            reader, writer = await connected(listener)
            assert await reader.read() == b""
            kept[0][1].close()
            await kept[0][1].wait_closed()
            writer.close()
            again, another = await connected(listener)
            another.write(framed(b"in"))
            assert await answer(again) == b"in"
            another.close()
            kept[1][1].close()

    run(work)


def test_an_idle_connection_is_closed(run: Callable[..., None]) -> None:
    async def work() -> None:
        async with listening(echo, Limits(idle_seconds=0.2)) as listener:
            reader, writer = await connected(listener)
            assert await asyncio.wait_for(reader.read(), 5) == b""
            writer.close()

    run(work)


def test_a_handler_that_fails_ends_its_connection_only(run: Callable[..., None]) -> None:
    def handle(frame: memoryview, _: Connection) -> list[bytes | FileRange]:
        if bytes(frame) == b"close":
            raise CloseConnection("asked for")
        if bytes(frame) == b"fail":
            raise ValueError("a mistake")
        return [bytes(frame)]

    async def work() -> None:
        async with listening(handle) as listener:
            for bad in (b"close", b"fail"):
                reader, writer = await connected(listener)
                writer.write(framed(b"one") + framed(bad) + framed(b"two"))
                assert await answer(reader) == b"one"
                assert await reader.read() == b""
                writer.close()
            assert listener.connections <= 1

    run(work)


def test_a_request_in_a_thousand_pieces_is_one_request(run: Callable[..., None]) -> None:
    async def work() -> None:
        async with listening(echo) as listener:
            reader, writer = await connected(listener)
            data = os.urandom(300_000)
            whole = framed(data) + framed(b"next")
            for at in range(0, len(whole), 997):
                writer.write(whole[at : at + 997])
                if at % 9970 == 0:
                    await asyncio.sleep(0)
            assert await answer(reader) == data
            assert await answer(reader) == b"next"
            writer.close()

    run(work)
