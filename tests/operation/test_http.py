"""`/healthz`, `/readyz`, and clients that are none."""

from __future__ import annotations

import contextlib
import json
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

import kraftline
from kraftline.errors import KraftlineError
from kraftline.node.thread import NodeThread
from kraftline.storage.log import Logs
from tests.node.running import kraftline as verb
from tests.operation.test_metrics import get


def raw(port: int, request: bytes) -> bytes:
    with socket.create_connection(("127.0.0.1", port), 30) as channel:
        channel.sendall(request)
        parts = []
        while part := channel.recv(65536):
            parts.append(part)
        return b"".join(parts)


def test_a_node_that_serves_is_healthy_and_ready() -> None:
    with kraftline.Node({"kraftline.metrics.listener": "0"}) as node:
        for path in ("/healthz", "/readyz"):
            status, text = get(node, path)
            assert status == 200
            assert json.loads(text) == {"is_well": True, "state": "RUNNING", "why": ""}


def test_a_node_that_starts_is_healthy_and_not_ready(monkeypatch: pytest.MonkeyPatch) -> None:
    loading, go_on = threading.Event(), threading.Event()
    opened = Logs.open

    def slow(*arguments: object, **more: object) -> Logs:
        loading.set()
        go_on.wait(60)
        return opened(*arguments, **more)  # type: ignore[arg-type]  # as they came

    monkeypatch.setattr(Logs, "open", slow)
    node = kraftline.Node({"kraftline.metrics.listener": "0"})
    face = NodeThread(node)
    starting = threading.Thread(target=face.start)
    starting.start()
    assert loading.wait(60)
    try:
        assert get(face, "/healthz")[0] == 200
        status, text = get(face, "/readyz")
        assert (status, json.loads(text)["why"]) == (503, "the node is starting")
        assert get(face, "/metrics")[0] == 503
    finally:
        go_on.set()
        starting.join()
    assert get(face, "/readyz")[0] == 200
    face.stop()


def test_other_requests_are_refused() -> None:
    with kraftline.Node({"kraftline.metrics.listener": "0"}) as node:
        assert get(node, "/")[0] == 404
        assert node.node.operation is not None
        port = node.node.operation.port
        assert raw(port, b"POST /metrics HTTP/1.1\r\n\r\n").startswith(b"HTTP/1.1 405 ")
        assert raw(port, b"hello\r\n\r\n").startswith(b"HTTP/1.1 400 ")
        assert raw(port, b"x" * 100_000) == b""
        head, _, body = raw(port, b"HEAD /metrics HTTP/1.1\r\n\r\n").partition(b"\r\n\r\n")
        assert b"200 OK" in head
        assert body == b""
        assert get(node, "/readyz")[0] == 200


def test_a_node_does_not_wait_for_clients_that_say_nothing(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with kraftline.Node({"kraftline.metrics.listener": "0"}) as node:
        assert node.node.operation is not None
        silent = socket.create_connection(("127.0.0.1", node.node.operation.port))
        silent.sendall(b"GET /metr")
        assert get(node, "/healthz")[0] == 200
        began = time.monotonic()
    assert time.monotonic() - began < 5
    with silent, contextlib.suppress(ConnectionResetError):
        assert silent.recv(1) == b""
    assert not [each for each in caplog.records if each.levelname == "ERROR"]


def test_only_this_machine_can_ask_unless_told_otherwise() -> None:
    with kraftline.Node({"kraftline.metrics.listener": "0"}) as node:
        channel = node.node.operation._channel  # type: ignore[union-attr]  # it was asked for
        assert channel.getsockname()[0] == "127.0.0.1"
    with kraftline.Node({"kraftline.metrics.listener": "0.0.0.0:0"}) as node:
        channel = node.node.operation._channel  # type: ignore[union-attr]  # it was asked for
        assert channel.getsockname()[0] == "0.0.0.0"


def test_without_the_setting_nothing_listens() -> None:
    with kraftline.Node() as node:
        assert node.node.operation is None


@pytest.mark.parametrize("text", ["many", "127.0.0.1:", "1:2:99999", "-1"])
def test_a_wrong_address_is_said_at_once(text: str) -> None:
    with pytest.raises(KraftlineError, match=r"is not \[HOST:\]PORT"):
        kraftline.Node({"kraftline.metrics.listener": text})


def test_a_wrong_option_is_wrong_use_and_touches_nothing(tmp_path: Path) -> None:
    override = f"log.dirs={tmp_path / 'data'}"
    for arguments, code in (
        (["--metrics", "many"], 2),
        (["--metrics", "99999"], 1),
        (["--override", "kraftline.metrics.listener=many"], 1),
    ):
        done = verb("start", "--override", override, *arguments)
        assert (done.returncode, "is not [HOST:]PORT" in done.stderr) == (code, True), done.stderr
    assert not (tmp_path / "data").exists()


def life_of(data: Path, *settings: str) -> list[dict[str, str]]:
    """What a process says from its start to its end."""
    given = ["listeners=PLAINTEXT://127.0.0.1:0", f"log.dirs={data}", *settings]
    process = subprocess.Popen(
        [
            *(sys.executable, "-m", "kraftline", "start", "--metrics", "0"),
            *("--log-format", "json", *(each for one in given for each in ("--override", one))),
        ],
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    said = []
    for line in process.stderr:
        if line.startswith("{"):
            said.append(json.loads(line))
            if "is ready on" in said[-1]["message"]:
                break
    process.send_signal(signal.SIGTERM)
    rest = process.stderr.read()
    process.stderr.close()
    assert process.wait(60) == 0
    return said + [json.loads(line) for line in rest.splitlines()]


def test_a_process_says_why_it_writes_a_snapshot(tmp_path: Path) -> None:
    said = life_of(tmp_path / "data", "metadata.log.max.record.bytes.between.snapshots=1")
    why = re.compile(
        r"Creating new KRaft snapshot file snapshot [0-9]{20}-[0-9]{10} because we have replayed "
        r"at least 1 bytes\."
    )
    assert any(why.fullmatch(each["message"]) for each in said)


def test_a_process_says_its_life_as_json(tmp_path: Path) -> None:
    said = life_of(tmp_path / "data")
    messages = [each["message"] for each in said]
    assert {"time", "level", "logger", "message"} == set(said[0])
    states = [each for each in messages if "->" in each]
    assert states == [
        "broker 1: NOT_RUNNING -> STARTING",
        "broker 1: STARTING -> RECOVERY",
        "broker 1: RECOVERY -> RUNNING",
        "broker 1: RUNNING -> PENDING_CONTROLLED_SHUTDOWN",
        "broker 1: PENDING_CONTROLLED_SHUTDOWN -> SHUTTING_DOWN",
    ]
    assert any(re.match(r"Metrics and health are on port \d+", each) for each in messages)
    assert messages[-1] == "Stopped: everything is flushed."
