"""Clients that are known by their certificates, and passwords over TLS."""

from __future__ import annotations

import ssl
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from kraftline.broker.authorization.certificates import NameRules, distinguished_name
from tests.broker.running import running
from tests.oracle.kafka import HOST
from tests.oracle.lines import LineProgram, Refused
from tests.security import secured
from tests.security.access import acl, set_acls
from tests.security.secured import PASSWORDS, Secured
from tests.security.test_sasl_like_kafka import set_password

TOPIC, DESCRIBE = 2, 8
SUBJECTS = (
    "/CN=alice",
    "/C=DE/ST=Land/L=Stadt/O=A, B & Co/OU=x=y;z/CN=alice",
    "/DC=org/DC=example/UID=17/CN=élise",
    "/O=two/CN=alice+UID=17",
    "/CN=bob/emailAddress=bob@example.org",
    "/street=1 Way/serialNumber=5/CN= #lead",
    "/CN=ends with space ",
    "/CN=  two  ",
    '/CN=quo"te<>;more',
)
RULES = (
    "DEFAULT",
    "RULE:^CN=(.*?),.*$/$1/,DEFAULT",
    "RULE:^CN=(.*?)$/$1/U",
    "RULE:^.*CN=([^,]*).*$/user-$1@$2/L,DEFAULT",
    "RULE:^O=x$/none/",
    "RULE:.*/$0/",
)
EC = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2")


def openssl(*arguments: str) -> None:
    subprocess.run(["openssl", *arguments], check=True, capture_output=True, timeout=60)


class CertificateNames(LineProgram):
    main = "CertificateNames"


@pytest.mark.oracle
def test_names_are_those_that_kafka_would_take(tmp_path: Path) -> None:
    with CertificateNames() as kafka:
        for number, subject in enumerate(SUBJECTS):
            file = tmp_path / f"{number}.pem"
            openssl(
                *("req", "-x509", *EC, "-utf8", "-subj", subject),
                *("-keyout", f"{tmp_path}/key", "-out", str(file)),
            )
            decode: Any = ssl._ssl._test_decode_cert  # type: ignore[attr-defined]  # as of a peer
            name = distinguished_name(decode(str(file)))
            for rules in RULES:
                try:
                    theirs = kafka.ask({"pem": file.read_text(), "rules": rules})["name"]
                except Refused:
                    theirs = None
                assert NameRules(rules).name_of(name) == theirs, (subject, rules)


@pytest.fixture(scope="module")
def pem(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An authority, and a node and a client whose certificates it has signed."""
    folder = tmp_path_factory.mktemp("pem")
    ca = ("-CA", f"{folder}/ca.pem", "-CAkey", f"{folder}/ca.key")
    openssl(
        *("req", "-x509", *EC, "-subj", "/CN=authority"),
        *("-keyout", f"{folder}/ca.key", "-out", f"{folder}/ca.pem"),
    )
    for name, subject in (("node", "/CN=localhost"), ("client", "/O=Some, Inc/CN=alice")):
        openssl(
            *("req", "-x509", *EC, "-subj", subject, *ca),
            *("-addext", f"subjectAltName=DNS:localhost,IP:{HOST}"),
            *("-keyout", f"{folder}/{name}.key", "-out", f"{folder}/{name}.pem"),
        )
    both = (folder / "node.key").read_text() + (folder / "node.pem").read_text()
    (folder / "both.pem").write_text(both)
    return folder


@pytest.fixture(scope="module")
def node(pem: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Secured, str, str]]:
    """A node of ours, and its addresses for certificates and for passwords over TLS."""
    listeners = ("PLAINTEXT", "SASL_PLAINTEXT", "SSL", "SASL_SSL")
    settings = {
        **secured.SETTINGS,
        "listeners": ",".join(f"{each}://{HOST}:0" for each in listeners),
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(pem / "both.pem"),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(pem / "ca.pem"),
        "listener.name.ssl.ssl.client.auth": "required",
        "listener.name.ssl.ssl.principal.mapping.rules": "RULE:^CN=(.*?),O=.*$/cert-$1/,DEFAULT",
    }
    for mechanism in ("plain", "scram-sha-256", "scram-sha-512"):
        key = f"{mechanism}.sasl.jaas.config"
        jaas = secured.SETTINGS[f"listener.name.sasl_plaintext.{key}"]
        settings[f"listener.name.sasl_ssl.{key}"] = jaas
    root = tmp_path_factory.mktemp("tls") / "data"
    with running(root, settings) as running_node:
        plain, sasl, tls, sasl_tls = (each.port for each in running_node.node.listeners)
        found = Secured((HOST, plain), (HOST, sasl), root)
        admin = AdminClient({"bootstrap.servers": found.bootstrap})
        for future in admin.create_topics([NewTopic(each, 1, 1) for each in "abc"]).values():
            future.result(60)
        set_acls(
            found,
            [
                acl(TOPIC, name, DESCRIBE, principal=f"User:{who}")
                for name, who in (("a", "cert-alice"), ("b", "alice"), ("c", "heidi"))
            ],
        )
        yield found, f"{HOST}:{tls}", f"{HOST}:{sasl_tls}"


def _topics(bootstrap: str, pem: Path, **more: str) -> set[str]:
    settings: dict[str, str | int | float | bool] = {
        "bootstrap.servers": bootstrap,
        "ssl.ca.location": str(pem / "ca.pem"),
        "log_level": 0,
    }
    settings |= {key.replace("_", "."): value for key, value in more.items()}
    return set(AdminClient(settings).list_topics(timeout=30).topics)


def test_a_client_is_who_its_certificate_says(node: tuple[Secured, str, str], pem: Path) -> None:
    found = _topics(
        node[1],
        pem,
        security_protocol="ssl",
        ssl_certificate_location=str(pem / "client.pem"),
        ssl_key_location=str(pem / "client.key"),
    )
    assert found == {"a"}


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_passwords_go_over_tls(node: tuple[Secured, str, str], pem: Path, mechanism: str) -> None:
    name, password, topic = "alice", PASSWORDS["alice"], "b"
    if mechanism != "PLAIN":
        name, password, topic = "heidi", "heidi's", "c"
        set_password(node[0], name, password)
    found = _topics(
        node[2],
        pem,
        security_protocol="sasl_ssl",
        sasl_mechanism=mechanism,
        sasl_username=name,
        sasl_password=password,
    )
    assert found == {topic}
