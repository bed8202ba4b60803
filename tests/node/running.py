"""A node of ours in a process of its own, as people run it; and real Kafka with the same face, so
that every test of a node can be asked of real Kafka too."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Protocol, Self

from tests.oracle.kafka import HOST, KraftCluster, free_ports

READY = re.compile(r"is ready on .*: node")


class Broker(Protocol):
    """What tests need of a node, ours or real."""

    @property
    def bootstrap(self) -> str: ...

    def start(self) -> None: ...

    def stop(self) -> None: ...

    def kill(self) -> None: ...


class OurNode:
    """`kraftline start` below `root`: `server.properties`, `node.log` and `data`.

    The settings are those of the real cluster of `tests.oracle.kafka`, but for SASL.
    """

    def __init__(
        self,
        root: Path,
        properties: Mapping[str, str] | None = None,
        *,
        log_dirs: int = 1,
        port: int | None = None,
    ) -> None:
        self.root = root
        self.log_dirs = [root / ("data" if n == 0 else f"data-{n + 1}") for n in range(log_dirs)]
        first, self.controller_port = free_ports(2)
        self.port = first if port is None else port
        self.properties = dict(properties or {})
        self._process: subprocess.Popen[bytes] | None = None
        self._said = 0

    @property
    def data(self) -> Path:
        return self.log_dirs[0]

    @property
    def bootstrap(self) -> str:
        return f"{HOST}:{self.port}"

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def settings(self) -> dict[str, str]:
        return {
            "process.roles": "broker,controller",
            "node.id": "1",
            "listeners": f"PLAINTEXT://{HOST}:{self.port},CONTROLLER://{HOST}:{self.controller_port}",
            "controller.listener.names": "CONTROLLER",
            "controller.quorum.bootstrap.servers": f"{HOST}:{self.controller_port}",
            "log.dirs": ",".join(map(str, self.log_dirs)),
            "auto.create.topics.enable": "false",
            "offsets.topic.num.partitions": "1",
            "offsets.topic.replication.factor": "1",
            **self.properties,
        }

    def configure(self) -> Path:
        self.root.mkdir(parents=True, exist_ok=True)
        file = self.root / "server.properties"
        file.write_text("".join(f"{key}={value}\n" for key, value in self.settings().items()))
        return file

    def format(self, cluster_id: str = "kraftlineoracleclustrA") -> None:
        arguments = ["format", "-t", cluster_id, "-c", str(self.configure()), "--standalone"]
        kraftline(*arguments).check_returncode()

    def start(self, timeout: float = 60) -> None:
        """Format on first use, start, and return when the node says that it is ready."""
        if not (self.data / "meta.properties").exists():
            self.format()
        self.launch()
        self.wait_for(READY.pattern, timeout)

    def launch(self) -> None:
        file = self.configure()
        with self._log.open("ab") as log:
            self._said = log.tell()
            self._process = subprocess.Popen(
                [sys.executable, "-m", "kraftline", "start", str(file)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
            )

    def wait_for(self, pattern: str, timeout: float = 60) -> None:
        assert self._process is not None
        deadline = time.monotonic() + timeout
        while not re.search(pattern, self.output()):
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise AssertionError(f"no {pattern!r} in what the node said:\n{self.output()}")
            time.sleep(0.02)

    def output(self) -> str:
        """What it has said since it was last started."""
        with self._log.open("rb") as log:
            log.seek(self._said)
            return log.read().decode(errors="replace")

    def resident(self) -> int:
        """Bytes of memory."""
        with open(f"/proc/{self.pid}/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def wait(self, timeout: float = 60) -> int:
        """Its exit code."""
        assert self._process is not None
        return self._process.wait(timeout)

    def stop(self, timeout: float = 60) -> None:
        """SIGTERM; it must end in order."""
        if self._process is not None and self.is_running():
            self._process.send_signal(signal.SIGTERM)
            try:
                code = self._process.wait(timeout)
            except subprocess.TimeoutExpired:
                self.kill()
                raise
            assert code == 0, self.output()
        self._process = None

    def kill(self) -> None:
        if self._process is not None:
            if self.is_running():
                self._process.send_signal(signal.SIGKILL)
            self._process.wait()
        self._process = None

    @property
    def _log(self) -> Path:
        return self.root / "node.log"

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is None:
            self.stop()
        else:
            self.kill()


class RealKafka:
    """A real 4.3 node over the same kind of directory; `KraftCluster` with the face of `Broker`."""

    def __init__(self, root: Path, properties: Mapping[str, str] | None = None) -> None:
        self.cluster = KraftCluster(root, dynamic=True, properties=properties)

    @property
    def data(self) -> Path:
        return self.cluster.data(1)

    @property
    def bootstrap(self) -> str:
        return self.cluster.bootstrap

    def start(self) -> None:
        if not (self.data / "meta.properties").exists():
            self.cluster.format(1)
        self.cluster.configure(1)
        self.cluster.start()

    def stop(self) -> None:
        self.cluster.stop()

    def kill(self) -> None:
        self.cluster.kill()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is None:
            self.stop()
        else:
            self.kill()


def kraftline(*arguments: str, timeout: float = 60) -> subprocess.CompletedProcess[str]:
    """Run a verb to its end."""
    return subprocess.run(
        [sys.executable, "-m", "kraftline", *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=timeout,
    )
