"""Answers over TLS: files arrive whole, a piece at a time, and slow clients cost little memory."""

from __future__ import annotations

import asyncio
import os
import shutil
import ssl
import struct
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from kraftline.server.connection import Connection
from kraftline.server.parts import FileRange
from kraftline.server.server import Listener
from tests.server.test_connections import answer, framed, run

__all__ = ["run"]  # a fixture

pytestmark = pytest.mark.skipif(shutil.which("openssl") is None, reason="no openssl")


@pytest.fixture(scope="module")
def server_side(tmp_path_factory: pytest.TempPathFactory) -> ssl.SSLContext:
    folder = tmp_path_factory.mktemp("tls")
    key, certificate = folder / "key.pem", folder / "certificate.pem"
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"]
    command += ["-subj", "/CN=localhost", "-keyout", str(key), "-out", str(certificate)]
    subprocess.run(command, check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    return context


def client_side() -> ssl.SSLContext:
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def test_ranges_arrive_whole_and_in_order(
    run: Callable[..., None], server_side: ssl.SSLContext, tmp_path: Path
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

        listener = Listener("SSL", "127.0.0.1", 0, handle, tls=server_side)
        await listener.start()
        reader, writer = await asyncio.open_connection(
            "127.0.0.1", listener.port, ssl=client_side(), limit=1 << 26
        )
        asked = [(7, 4_900_000), (0, 10), (100, 70_000), (4_999_999, 1), (3, 2_000_000)]
        writer.write(b"".join(framed(struct.pack(">ii", *each)) for each in asked))
        for start, length in asked:
            piece = data[start : start + length]
            assert await answer(reader) == b"<" + piece + b"|" + piece + b">"
        writer.close()
        await listener.stop()
        os.close(descriptor)
        assert len(released) == 2 * len(asked)

    run(work)


def test_who_does_not_read_has_only_a_piece_waiting(
    run: Callable[..., None], server_side: ssl.SSLContext, tmp_path: Path
) -> None:
    (tmp_path / "segment").write_bytes(bytes(50_000_000))
    connections = []

    async def work() -> None:
        descriptor = os.open(tmp_path / "segment", os.O_RDONLY)

        def handle(frame: memoryview, connection: Connection) -> list[bytes | FileRange]:
            connections.append(connection)
            return [FileRange(descriptor, 0, 50_000_000)]

        listener = Listener("SSL", "127.0.0.1", 0, handle, tls=server_side)
        await listener.start()
        reader, writer = await asyncio.open_connection(
            "127.0.0.1", listener.port, ssl=client_side(), limit=1 << 16
        )
        writer.write(framed(b"all of it"))
        await asyncio.sleep(0.5)
        transport = connections[0]._transport
        assert transport is not None
        assert transport.get_write_buffer_size() < 1 << 20
        assert len(await reader.readexactly(50_000_004)) == 50_000_004
        writer.close()
        await listener.stop()
        os.close(descriptor)

    run(work)


def test_a_file_that_was_cut_ends_the_connection(
    run: Callable[..., None], server_side: ssl.SSLContext, tmp_path: Path
) -> None:
    (tmp_path / "segment").write_bytes(bytes(1_000_000))

    async def work() -> None:
        descriptor = os.open(tmp_path / "segment", os.O_RDONLY)
        listener = Listener(
            "SSL",
            "127.0.0.1",
            0,
            lambda frame, _: [FileRange(descriptor, 0, 2_000_000)],
            tls=server_side,
        )
        await listener.start()
        reader, writer = await asyncio.open_connection(
            "127.0.0.1", listener.port, ssl=client_side()
        )
        writer.write(framed(b"x"))
        assert len(await reader.read(-1)) <= 1_000_004
        writer.close()
        await listener.stop()
        os.close(descriptor)

    run(work)
