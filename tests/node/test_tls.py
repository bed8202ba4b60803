"""TLS listeners: certificates from PEM files or from the settings, clients' certificates asked for,
and stores that cannot be read refused with what to do."""

from __future__ import annotations

import subprocess
from pathlib import Path

import confluent_kafka
import pytest
from confluent_kafka import cimpl
from confluent_kafka.admin import AdminClient

from tests.node.conftest import MakeNode
from tests.node.running import OurNode
from tests.oracle.kafka import HOST, free_ports

SUBJECT = ("-subj", "/CN=localhost")


def openssl(*arguments: str) -> None:
    subprocess.run(["openssl", *arguments], check=True, capture_output=True, timeout=60)


@pytest.fixture(scope="module")
def pem(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An authority, and a node and a client whose certificates it has signed."""
    folder = tmp_path_factory.mktemp("pem")
    key = ("-newkey", "rsa:2048", "-nodes")
    openssl(
        *("req", "-x509", *key, "-days", "2", "-subj", "/CN=authority"),
        *("-keyout", f"{folder}/ca.key", "-out", f"{folder}/ca.pem"),
    )
    (folder / "names").write_text(f"subjectAltName=DNS:localhost,IP:{HOST}")
    for name in ("node", "client"):
        request = f"{folder}/{name}.csr"
        openssl("req", *key, *SUBJECT, "-keyout", f"{folder}/{name}.key", "-out", request)
        openssl(
            *("x509", "-req", "-days", "2", "-in", request, "-out", f"{folder}/{name}.pem"),
            *("-CA", f"{folder}/ca.pem", "-CAkey", f"{folder}/ca.key", "-CAcreateserial"),
            *("-extfile", f"{folder}/names"),
        )
    both = (folder / "node.key").read_text() + (folder / "node.pem").read_text()
    (folder / "both.pem").write_text(both)
    return folder


def secured(make_node: MakeNode, more: dict[str, str]) -> tuple[OurNode, str]:
    node = make_node()
    (port,) = free_ports(1)
    node.properties = {
        "listeners": f"PLAINTEXT://{HOST}:{node.port},SSL://{HOST}:{port},"
        f"CONTROLLER://{HOST}:{node.controller_port}",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,SSL:SSL,CONTROLLER:PLAINTEXT",
        **more,
    }
    return node, f"{HOST}:{port}"


def client(pem: Path, bootstrap: str, **more: str) -> AdminClient:
    settings: dict[str, str | int | float | bool] = {
        "bootstrap.servers": bootstrap,
        "security.protocol": "ssl",
        "ssl.ca.location": str(pem / "ca.pem"),
        "log_level": 0,
    }
    return AdminClient(settings | {key.replace("_", "."): value for key, value in more.items()})


def test_a_node_speaks_tls_with_a_pem_file(make_node: MakeNode, pem: Path) -> None:
    node, bootstrap = secured(
        make_node,
        {"ssl.keystore.type": "PEM", "ssl.keystore.location": str(pem / "both.pem")},
    )
    node.start()
    found = client(pem, bootstrap).list_topics(timeout=10)
    # Whoever comes through a listener is told addresses of the same one.
    assert [str(each) for each in found.brokers.values()] == [f"{bootstrap}/1"]
    producer = confluent_kafka.Producer(
        {
            "bootstrap.servers": bootstrap,
            "security.protocol": "ssl",
            "ssl.ca.location": str(pem / "ca.pem"),
            "log_level": 0,
        }
    )
    admin = client(pem, bootstrap)
    admin.create_topics([cimpl.NewTopic("t", 1, 1)])["t"].result(10)
    producer.produce("t", b"v" * 100_000)
    assert producer.flush(10) == 0
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": bootstrap,
            "security.protocol": "ssl",
            "ssl.ca.location": str(pem / "ca.pem"),
            "group.id": "nobody",
            "enable.auto.commit": False,  # closing would look for a coordinator
        }
    )
    consumer.assign([confluent_kafka.TopicPartition("t", 0, 0)])
    message = consumer.poll(10)
    assert message is not None
    assert message.value() == b"v" * 100_000
    consumer.close()


def test_clients_must_show_a_certificate_where_it_is_required(
    make_node: MakeNode, pem: Path
) -> None:
    """The listener's own settings count more than those of all."""

    def text(name: str) -> str:
        return (pem / name).read_text().replace("\n", "\\n")

    node, bootstrap = secured(
        make_node,
        {
            "ssl.keystore.type": "PEM",
            "ssl.truststore.type": "PEM",
            "ssl.keystore.certificate.chain": text("node.pem"),
            "ssl.keystore.key": text("node.key"),
            "listener.name.ssl.ssl.client.auth": "required",
            "listener.name.ssl.ssl.truststore.certificates": text("ca.pem"),
        },
    )
    node.start()
    assert "warning" not in node.output()
    certificate = {
        "ssl_certificate_location": str(pem / "client.pem"),
        "ssl_key_location": str(pem / "client.key"),
    }
    assert client(pem, bootstrap, **certificate).list_topics(timeout=10).brokers
    with pytest.raises(confluent_kafka.KafkaException):
        client(pem, bootstrap).list_topics(timeout=2)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({}, "SSL needs a certificate"),
        ({"ssl.keystore.location": "/x.jks"}, "keytool -importkeystore -srckeystore /x.jks"),
        (
            {"ssl.keystore.location": "/x.p12", "ssl.keystore.type": "PKCS12"},
            "openssl pkcs12 -in /x.p12 -out keystore.pem -nodes",
        ),
        ({"ssl.keystore.location": "/x.pem", "ssl.keystore.type": "PEM"}, "No such file"),
        ({"ssl.keystore.key": "x", "ssl.keystore.type": "PEM"}, "go together"),
    ],
)
def test_what_cannot_be_used_is_refused(
    make_node: MakeNode, settings: dict[str, str], words: str
) -> None:
    node, _ = secured(make_node, settings)
    node.format()
    node.launch()
    assert node.wait() == 1
    assert words in node.output()
    # Nothing was begun: the directory is as it was.
    assert not (node.data / ".lock").exists()
