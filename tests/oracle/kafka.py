"""Real Kafka nodes on free loopback ports: KRaft clusters, and ZooKeeper with a broker."""

from __future__ import annotations

import socket
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType

from tests.oracle.jars import NEWEST
from tests.oracle.java import JavaServer, command_line, run

HOST = "127.0.0.1"


def free_ports(count: int) -> list[int]:
    """Ports nobody listens on now; all held at once so that they differ."""
    sockets = [socket.socket() for _ in range(count)]
    try:
        for each in sockets:
            each.bind((HOST, 0))
        return [int(each.getsockname()[1]) for each in sockets]
    finally:
        for each in sockets:
            each.close()


def wait_for_port(port: int, timeout: float = 60) -> None:
    """Return once something listens on a loopback port."""
    deadline = time.monotonic() + timeout
    while True:
        try:
            socket.create_connection((HOST, port), 1).close()
            return
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.1)


def write_properties(path: Path, properties: Mapping[str, str]) -> None:
    path.write_text("".join(f"{name}={value}\n" for name, value in properties.items()))


@dataclass(frozen=True)
class NodeSpec:
    """One KRaft node: its id, roles, and properties that only it has."""

    node_id: int
    roles: str = "broker,controller"
    properties: Mapping[str, str] = field(default_factory=dict)
    log_dirs: int = 1
    jaas: str | None = None

    @property
    def is_controller(self) -> bool:
        return "controller" in self.roles

    @property
    def is_broker(self) -> bool:
        return "broker" in self.roles


class KraftCluster:
    """KRaft nodes below `root`: `root/node-ID/` has server.properties, server.log and data.

    `dynamic=True` formats with `--standalone` (kraft.version 1), so exactly one controller.
    """

    def __init__(
        self,
        root: Path,
        nodes: Sequence[NodeSpec] = (NodeSpec(1),),
        *,
        version: str = NEWEST,
        cluster_id: str = "kraftlineoracleclustrA",
        properties: Mapping[str, str] | None = None,
        dynamic: bool = False,
        format_args: Sequence[str] = (),
    ) -> None:
        self.root = root
        self.version = version
        self.cluster_id = cluster_id
        self.nodes = {spec.node_id: spec for spec in nodes}
        self._properties = dict(properties or {})
        self._dynamic = dynamic
        self._format_args = list(format_args)
        ports = free_ports(3 * len(nodes))
        self._ports = {
            spec.node_id: tuple(ports[3 * i : 3 * i + 3]) for i, spec in enumerate(nodes)
        }
        self._running: dict[int, JavaServer] = {}

    @property
    def bootstrap(self) -> str:
        """Plaintext addresses of all brokers."""
        return ",".join(f"{HOST}:{self.port(n)}" for n, s in self.nodes.items() if s.is_broker)

    @property
    def sasl_bootstrap(self) -> str:
        return ",".join(f"{HOST}:{p[2]}" for n, p in self._ports.items() if self.nodes[n].is_broker)

    @property
    def controllers(self) -> str:
        return ",".join(
            f"{HOST}:{p[1]}" for n, p in self._ports.items() if self.nodes[n].is_controller
        )

    def port(self, node_id: int) -> int:
        return self._ports[node_id][0]

    def controller_endpoint(self, node_id: int) -> tuple[str, int]:
        return HOST, self._ports[node_id][1]

    def directory(self, node_id: int) -> Path:
        return self.root / f"node-{node_id}"

    def data(self, node_id: int, index: int = 0) -> Path:
        """A log directory of a node; the first one also has the metadata log."""
        return self.directory(node_id) / ("data" if index == 0 else f"data-{index + 1}")

    def configure(self, node_id: int, extra: Mapping[str, str] | None = None) -> Path:
        """Write server.properties (again); `extra` wins over everything else."""
        spec = self.nodes[node_id]
        broker, controller, sasl = self._ports[node_id]
        listeners, advertised = [], []
        if spec.is_broker:
            listeners += [f"PLAINTEXT://{HOST}:{broker}", f"SASL_PLAINTEXT://{HOST}:{sasl}"]
            advertised += listeners
        if spec.is_controller:
            listeners.append(f"CONTROLLER://{HOST}:{controller}")
        jaas = "org.apache.kafka.common.security.plain.PlainLoginModule required"
        properties = {
            "process.roles": spec.roles,
            "node.id": str(node_id),
            "listeners": ",".join(listeners),
            "controller.listener.names": "CONTROLLER",
            "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,"
            "SASL_PLAINTEXT:SASL_PLAINTEXT",
            "log.dirs": ",".join(str(self.data(node_id, i)) for i in range(spec.log_dirs)),
            "num.partitions": "1",
            "auto.create.topics.enable": "false",
            "offsets.topic.num.partitions": "1",
            "offsets.topic.replication.factor": "1",
            "transaction.state.log.num.partitions": "1",
            "transaction.state.log.replication.factor": "1",
            "transaction.state.log.min.isr": "1",
            "group.initial.rebalance.delay.ms": "0",
            # Indexes of deleted topics are never trimmed from this size.
            "log.index.size.max.bytes": "4096",
            "num.network.threads": "1",
            "num.io.threads": "2",
            "log.cleaner.dedupe.buffer.size": "4194304",
            "log.cleaner.threads": "1",
        }
        if spec.is_broker:
            properties |= {
                "sasl.enabled.mechanisms": "PLAIN",
                "listener.name.sasl_plaintext.plain.sasl.jaas.config": f"{jaas} "
                'username="admin" password="secret" user_admin="secret" user_alice="secret";',
            }
            if self.version >= "3.3":
                properties["advertised.listeners"] = ",".join(advertised)
        if self._dynamic:
            properties["controller.quorum.bootstrap.servers"] = self.controllers
        else:
            properties["controller.quorum.voters"] = ",".join(
                f"{n}@{HOST}:{p[1]}" for n, p in self._ports.items() if self.nodes[n].is_controller
            )
        if self.version >= "4":
            properties |= {
                "share.coordinator.state.topic.num.partitions": "1",
                "share.coordinator.state.topic.replication.factor": "1",
                "share.coordinator.state.topic.min.isr": "1",
            }
        properties |= {**self._properties, **spec.properties, **(extra or {})}
        self.directory(node_id).mkdir(parents=True, exist_ok=True)
        path = self.directory(node_id) / "server.properties"
        write_properties(path, properties)
        return path

    def format(self, node_id: int) -> None:
        args = ["format", "-t", self.cluster_id, "-c", str(self.configure(node_id))]
        if self._dynamic:
            is_first = node_id == min(n for n, s in self.nodes.items() if s.is_controller)
            args.append("--standalone" if is_first else "--no-initial-controllers")
        run("kafka.tools.StorageTool", [*args, *self._format_args], version=self.version)

    def launch(self, node_id: int) -> JavaServer:
        """Start a formatted node without waiting for it."""
        directory = self.directory(node_id)
        command = command_line(
            "kafka.Kafka",
            [str(directory / "server.properties")],
            version=self.version,
            log_level="info",
            # Brokers before 4.0 look for MBeans of log4j otherwise.
            system={"kafka.logs.dir": str(directory)},
        )
        server = JavaServer(command, directory / "server.log")
        self._running[node_id] = server
        return server

    def start(self, *node_ids: int) -> None:
        """Start nodes together and wait until each says that it has started."""
        servers = [self.launch(node_id) for node_id in node_ids or self.nodes]
        for server in servers:
            server.wait_for("Kafka Server started", 90)

    def stop(self, *node_ids: int) -> None:
        """Clean shutdown; without ids of all nodes, controllers last."""
        everyone = sorted(self._running, key=lambda n: self.nodes[n].is_controller)
        for node_id in node_ids or everyone:
            self._running.pop(node_id).stop()

    def kill(self, *node_ids: int) -> None:
        for node_id in node_ids or list(self._running):
            self._running.pop(node_id).kill()

    def pid(self, node_id: int) -> int:
        return self._running[node_id].pid

    def __enter__(self) -> KraftCluster:
        for node_id in self.nodes:
            if not (self.data(node_id) / "meta.properties").exists():
                self.format(node_id)
            else:
                self.configure(node_id)
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


class ZooKeeperBroker:
    """ZooKeeper and one broker of an old release below `root`."""

    def __init__(
        self, root: Path, *, version: str, properties: Mapping[str, str] | None = None
    ) -> None:
        self.root = root
        self.version = version
        self.data = root / "data"
        self._zookeeper_port, self.port = free_ports(2)
        self._properties = dict(properties or {})
        self._zookeeper: JavaServer | None = None
        self._broker: JavaServer | None = None

    @property
    def bootstrap(self) -> str:
        return f"{HOST}:{self.port}"

    @property
    def zookeeper(self) -> str:
        return f"{HOST}:{self._zookeeper_port}"

    def configure(self, extra: Mapping[str, str] | None = None) -> Path:
        path = self.root / "server.properties"
        properties = {
            "broker.id": "0",
            "listeners": f"PLAINTEXT://{HOST}:{self.port}",
            "zookeeper.connect": self.zookeeper,
            "log.dirs": str(self.data),
            "offsets.topic.num.partitions": "1",
            "offsets.topic.replication.factor": "1",
            "log.index.size.max.bytes": "4096",
            "num.network.threads": "1",
            "num.io.threads": "2",
            "log.cleaner.dedupe.buffer.size": "4194304",
            "group.initial.rebalance.delay.ms": "0",
            "transaction.state.log.num.partitions": "1",
            "transaction.state.log.replication.factor": "1",
            "transaction.state.log.min.isr": "1",
        }
        write_properties(path, {**properties, **self._properties, **(extra or {})})
        return path

    def _log4j(self) -> Path:
        """Brokers before 0.11 log through log4j 1 itself, silently when not configured."""
        path = self.root / "log4j.properties"
        settings = {
            "log4j.rootLogger": "INFO, out",
            "log4j.appender.out": "org.apache.log4j.ConsoleAppender",
            "log4j.appender.out.layout": "org.apache.log4j.PatternLayout",
            "log4j.appender.out.layout.ConversionPattern": "%p %c %m%n",
        }
        write_properties(path, settings)
        return path

    def start(self, extra: Mapping[str, str] | None = None) -> None:
        """Start the broker; ZooKeeper runs since `__enter__`."""
        command = command_line(
            "kafka.Kafka",
            [str(self.configure(extra))],
            version=self.version,
            log_level="info",
            system={
                "zookeeper.sasl.client": "false",
                "log4j.configuration": f"file:{self._log4j()}",
            },
        )
        self._broker = JavaServer(command, self.root / "server.log")
        self._broker.wait_for("started", 90)
        wait_for_port(self.port)

    def stop(self) -> None:
        if self._broker is not None:
            self._broker.stop()
            self._broker = None

    def kill(self) -> None:
        if self._broker is not None:
            self._broker.kill()
            self._broker = None

    def __enter__(self) -> ZooKeeperBroker:
        self.root.mkdir(parents=True, exist_ok=True)
        config = self.root / "zookeeper.properties"
        write_properties(
            config,
            {
                "dataDir": str(self.root / "zookeeper"),
                "clientPort": str(self._zookeeper_port),
                "clientPortAddress": HOST,
                "maxClientCnxns": "0",
                "admin.enableServer": "false",
            },
        )
        command = command_line(
            "org.apache.zookeeper.server.quorum.QuorumPeerMain",
            [str(config)],
            version=self.version,
            log_level="info",
            system={"zookeeper.jmx.log4j.disable": "true"},
        )
        self._zookeeper = JavaServer(command, self.root / "zookeeper.log")
        self._zookeeper.wait_for("binding to port", 30)
        wait_for_port(self._zookeeper_port)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()
        if self._zookeeper is not None:
            self._zookeeper.stop()
