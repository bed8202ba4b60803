"""How a node is started, explained, refused and stopped, as a person meets it."""

from __future__ import annotations

import json
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

from confluent_kafka.admin import AdminClient

from kraftline.storage.clean_shutdown import read_clean_shutdown
from tests.clients.adapters import Confluent, Sent
from tests.node.conftest import MakeNode
from tests.node.running import READY, OurNode, kraftline
from tests.oracle.kafka import HOST, free_ports


def cluster_id(bootstrap: str) -> str:
    return str(AdminClient({"bootstrap.servers": bootstrap}).list_topics(timeout=10).cluster_id)


def test_without_a_file_a_node_is_there_at_once(tmp_path: Path) -> None:
    (port,) = free_ports(1)
    command = [sys.executable, "-m", "kraftline", "start", "--override"]
    process = subprocess.Popen(
        [*command, f"listeners=PLAINTEXT://{HOST}:{port}"],
        cwd=tmp_path,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    said: list[str] = []
    for line in process.stderr:
        said.append(line)
        if READY.search(line):
            break
    text = "".join(said)
    assert "Formatting" in text
    assert f"ready on PLAINTEXT://{HOST}:{port}: node 1 of cluster" in text
    assert re.search(r"0 partitions, started in \d+\.\d\d s", text)
    assert (tmp_path / "kraftline-data" / "meta.properties").exists()
    assert cluster_id(f"{HOST}:{port}") in text
    process.send_signal(signal.SIGINT)
    assert process.wait(30) == 0
    process.stderr.close()


def test_a_stop_is_orderly_and_leaves_the_marker(node: OurNode) -> None:
    client = Confluent(node.bootstrap)
    client.create_topic("t")
    client.produce("t", [Sent(None, b"v")])
    assert not (node.data / ".kafka_cleanshutdown").exists()
    node.stop()
    marker = read_clean_shutdown(node.data / ".kafka_cleanshutdown")
    assert marker.broker_epoch is not None
    assert marker.broker_epoch > 0
    assert (node.data / "recovery-point-offset-checkpoint").read_text() == "0\n1\nt 0 1\n"
    node.start()
    assert "1 partition," in node.output()
    assert client.watermarks("t") == (0, 1)


def test_a_second_node_on_the_same_directory_is_refused(node: OurNode, tmp_path: Path) -> None:
    file = tmp_path / "second.properties"
    settings = node.settings() | {"listeners": f"PLAINTEXT://{HOST}:0,CONTROLLER://{HOST}:0"}
    file.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
    refused = kraftline("start", str(file))
    assert refused.returncode == 1
    assert "another process owns this log directory" in refused.stderr
    assert cluster_id(node.bootstrap) == "kraftlineoracleclustrA"


def test_a_taken_port_is_said_and_nothing_is_touched(node: OurNode, make_node: MakeNode) -> None:
    other = make_node(port=node.port)
    other.format()
    other.launch()
    assert other.wait() == 1
    assert f"Socket server failed to bind to {HOST}:{node.port}: Address already in use" in (
        other.output()
    )
    assert not (other.data / ".lock").exists()


def test_a_directory_that_was_never_formatted_is_refused(make_node: MakeNode) -> None:
    node = make_node()
    node.launch()
    assert node.wait() == 1
    assert "No readable meta.properties files found" in node.output()
    assert "kraftline format" in node.output()


def test_a_directory_of_another_node_is_refused(make_node: MakeNode) -> None:
    node = make_node()
    node.format()
    node.properties["node.id"] = "2"
    node.launch()
    assert node.wait() == 1
    assert "Stored node id 1 doesn't match previous node id 2" in node.output()


def test_what_is_not_supported_yet_is_said_plainly(make_node: MakeNode) -> None:
    for properties, words in (
        ({"process.roles": "broker", "listeners": f"PLAINTEXT://{HOST}:0"}, "not supported yet"),
        ({"process.roles": "controller", "listeners": f"CONTROLLER://{HOST}:0"}, "not supported"),
        ({"controller.quorum.voters": "1@h:1,2@h:2"}, "names 2 voters"),
        ({"authorizer.class.name": "org.example.Guard"}, "StandardAuthorizer is."),
        ({"create.topic.policy.class.name": "org.example.Policy"}, "is not supported"),
        (
            {
                "listeners": f"SASL_PLAINTEXT://{HOST}:0,CONTROLLER://{HOST}:0",
                "listener.security.protocol.map": "SASL_PLAINTEXT:SASL_PLAINTEXT,"
                "CONTROLLER:PLAINTEXT",
                "security.inter.broker.protocol": "SASL_PLAINTEXT",
            },
            "SASL mechanism GSSAPI is not supported here",
        ),
        ({"listeners": f"PLAINTEXT://{HOST}:0"}, "controller.listener.names must contain"),
    ):
        refused = kraftline("start", str(make_node(properties).configure()))
        assert refused.returncode == 1
        assert words in refused.stderr
        assert "Traceback" not in refused.stderr


def test_wrong_use_has_its_own_exit_code() -> None:
    wrong = kraftline("start", "--override", "nonsense")
    assert wrong.returncode == 2
    assert "'nonsense' is not KEY=VALUE" in wrong.stderr


def test_explain_shows_where_each_value_comes_from(make_node: MakeNode) -> None:
    file = make_node({"ssl.key.password": "hunter2", "num.partition": "3"}).configure()
    shown = kraftline("start", str(file), "--explain", "--override", "num.io.threads=9")
    assert shown.returncode == 0
    assert re.search(r"^num\.io\.threads +9  \(override\)$", shown.stdout, re.M)
    assert re.search(
        r"^ssl\.key\.password +\[hidden\]  \(.*server\.properties\)$", shown.stdout, re.M
    )
    assert re.search(r"^num\.network\.threads +3  \(default\)$", shown.stdout, re.M)
    assert "did you mean num.partitions?" in shown.stderr
    assert "hunter2" not in shown.stdout + shown.stderr
    rows = json.loads(kraftline("start", str(file), "--explain", "--format", "json").stdout)
    assert {"name": "node.id", "value": "1", "source": str(file)} in rows
    wrong = kraftline("start", str(file), "--explain", "--override", "process.roles=broker")
    assert wrong.returncode == 1
    assert "controller.listener.names must not contain" in wrong.stderr
    assert "(override)" in wrong.stdout


def test_it_starts_after_a_kill(node: OurNode) -> None:
    client = Confluent(node.bootstrap)
    client.create_topic("t", 3)
    offsets = client.produce("t", [Sent(None, b"v%d" % n) for n in range(100)], partition=1)
    node.kill()
    node.start()
    assert client.produce("t", [Sent(None, b"after")], partition=1) == [offsets[-1] + 1]
    assert len(client.consume("t", None, 101, partition=1)) == 101


def test_it_starts_without_what_can_be_made_again(node: OurNode) -> None:
    """Kafka starts on such directories too."""
    client = Confluent(node.bootstrap)
    client.create_topic("t")
    client.produce("t", [Sent(None, b"v%d" % n) for n in range(100)])
    node.stop()
    metadata = node.data / "__cluster_metadata-0"
    for path in [*metadata.iterdir(), *(node.data / "t-0").iterdir()]:
        if path.suffix in (".index", ".timeindex", ".snapshot") or path.name in (
            "quorum-state",
            "leader-epoch-checkpoint",
        ):
            path.unlink()
    for name in ("bootstrap.checkpoint", ".kafka_cleanshutdown"):
        (node.data / name).unlink()
    node.start()
    assert client.watermarks("t") == (0, 100)


def test_a_metadata_log_without_this_broker_is_enough(make_node: MakeNode, tmp_path: Path) -> None:
    """Only a metadata log, and meta.properties: whoever registers last is this broker."""
    node = make_node()
    node.start()
    Confluent(node.bootstrap).create_topic("t")
    node.stop()
    bare = make_node()
    bare.data.mkdir(parents=True)
    shutil.copy(node.data / "meta.properties", bare.data)
    bare.start()
    assert Confluent(bare.bootstrap).topics() == {}


def test_an_unreadable_directory_is_offline_and_the_others_serve(make_node: MakeNode) -> None:
    node = make_node(log_dirs=2)
    node.start()
    client = Confluent(node.bootstrap)
    for number in range(4):
        client.create_topic(f"t{number}")
        client.produce(f"t{number}", [Sent(None, b"v")])
    held = {path.name for path in node.log_dirs[1].iterdir() if path.name.startswith("t")}
    assert held  # both directories are used
    node.stop()
    meta = node.log_dirs[1] / "meta.properties"
    meta.rename(meta.with_suffix(".aside"))
    meta.mkdir()  # which root cannot read either
    node.start()
    assert f"{node.log_dirs[1]} is offline" in node.output()
    for number in range(4):
        if f"t{number}-0" not in held:
            assert client.watermarks(f"t{number}") == (0, 1)
    assert not [name for name in held if (node.data / name).exists()]
    node.stop()
    meta.rmdir()
    meta.with_suffix(".aside").rename(meta)
    node.start()
    assert [client.watermarks(f"t{number}") for number in range(4)] == [(0, 1)] * 4


def test_snapshots_of_the_metadata_are_written(make_node: MakeNode) -> None:
    node = make_node({"metadata.log.max.record.bytes.between.snapshots": "2000"})
    node.start()
    client = Confluent(node.bootstrap)
    for number in range(10):
        client.create_topic(f"t{number}", 5)
    deadline = time.monotonic() + 10
    metadata = node.data / "__cluster_metadata-0"
    while len(list(metadata.glob("*.checkpoint"))) < 2 and time.monotonic() < deadline:
        time.sleep(0.1)
    assert len(list(metadata.glob("*.checkpoint"))) >= 2
    node.kill()
    node.start()
    assert client.topics() == {f"t{number}": 5 for number in range(10)}


def test_nobody_is_served_before_the_node_is_ready(make_node: MakeNode) -> None:
    """Whoever gets in sees the broker unfenced, with all partitions led."""
    node = make_node()
    node.start()
    Confluent(node.bootstrap).create_topic("t", 50)
    node.kill()
    node.launch()
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        try:
            socket.create_connection((HOST, node.port), 0.2).close()
            break
        except OSError:
            time.sleep(0.002)
    found = AdminClient({"bootstrap.servers": node.bootstrap}).list_topics(timeout=10)
    assert list(found.brokers) == [1]
    assert {each.leader for each in found.topics["t"].partitions.values()} == {1}


def test_a_node_imports_only_what_it_needs() -> None:
    """Each of these would cost every start some milliseconds."""
    heavy = ("pyarrow", "pyspark", "rich", "javaproperties", "difflib", "http.client", "xml.sax")
    code = (
        "import sys, kraftline.cli.start, kraftline.node.process; "
        f"print([name for name in {heavy} if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
