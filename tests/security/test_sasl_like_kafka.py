"""Clients say who they are, rightly and wrongly, to real Kafka and to us: what each answers."""

from __future__ import annotations

import base64
import hashlib
import time
from collections.abc import Callable
from typing import Any

import pytest

from kraftline.schema.api.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    ScramCredentialUpsertion,
)
from kraftline.schema.api.api_versions import ApiVersionsRequest
from kraftline.schema.api.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
)
from kraftline.schema.api.metadata import MetadataRequest
from kraftline.schema.api.sasl_authenticate import SaslAuthenticateRequest
from kraftline.schema.api.sasl_handshake import SaslHandshakeRequest
from tests.broker.talking import Talk
from tests.security.saying import HASHES, NONCE, Saying, ScramClient, plain
from tests.security.secured import FAILURE_MS, PASSWORDS, SESSION_MS, Secured

VERSIONS = ApiVersionsRequest(client_software_name="rec", client_software_version="1")
NO_TOPICS = MetadataRequest(topics=())
MECHANISMS = tuple(HASHES)


def _is_known(client: Saying) -> None:
    """Whether anything else is answered now, without what it says."""
    client.say(NO_TOPICS, 9)
    client.said[-1] = "closed" if client.said[-1] == "closed" else "answered"


def handshakes(node: Secured) -> list[Any]:
    said: list[Any] = []
    for version in (0, 1):
        for mechanism in ("PLAIN", "SCRAM-SHA-256", "GSSAPI", "plain")[version * 2 - 2 :]:
            with Saying(node.sasl) as client:
                client.handshake(mechanism, version)
                _is_known(client)
                said.append((version, mechanism, client.said))
    return said


def what_comes_first(node: Secured) -> list[Any]:
    said: list[Any] = []

    def tell(*steps: Callable[[Saying], object]) -> None:
        with Saying(node.sasl) as client:
            for step in steps:
                step(client)
            for each in client.said:
                if isinstance(each, dict) and "api_keys" in each:
                    each.pop("api_keys")
                    each.pop("finalized_features_epoch")
                    each["supported_features"] = each["finalized_features"] = None
            said.append(client.said)

    def versions(client: Saying) -> None:
        client.say(VERSIONS, 3)

    def unknown_versions(client: Saying) -> None:
        client.send(VERSIONS, 4)
        client.frame()

    def handshake(client: Saying) -> None:
        client.handshake("PLAIN")

    def token(client: Saying) -> None:
        client.authenticate(plain("alice", PASSWORDS["alice"]))

    def metadata(client: Saying) -> None:
        client.say(NO_TOPICS, 9)

    def early_token(client: Saying) -> None:
        client.say(SaslAuthenticateRequest(auth_bytes=b""), 2)

    def odd_versions(client: Saying) -> None:
        client.say(ApiVersionsRequest(client_software_name="a b"), 3)

    tell(versions, handshake, token)
    tell(versions, versions)
    tell(odd_versions, odd_versions, versions, handshake)
    tell(metadata)
    tell(early_token)
    tell(handshake, handshake)
    tell(handshake, versions)
    tell(handshake, metadata)
    tell(versions, metadata)
    tell(lambda client: client.bare(b"`\x82"))
    tell(lambda client: client.bare(b""))
    tell(unknown_versions)
    return said


def passwords(node: Secured) -> list[Any]:
    tokens = [
        *(plain(*each) for each in PASSWORDS.items()),
        plain("alice", "wrong"),
        plain("nobody", "wrong"),
        plain("", "wrong"),
        plain("alice", ""),
        plain("alice", PASSWORDS["alice"], "alice"),
        plain("alice", PASSWORDS["alice"], "bob"),
        b"alice\0secret",
        b"a\0b\0c\0d\0e",
        b"",
        b"\0\xff\xfe\0secret",
    ]
    said: list[Any] = []
    for version in (0, 1, 2):
        for token in tokens if version == 2 else tokens[2:4]:
            with Saying(node.sasl) as client:
                client.handshake("PLAIN")
                client.authenticate(token, version)
                _is_known(client)
                said.append((version, token, client.said))
    for token in tokens[2:4]:
        with Saying(node.sasl) as client:
            client.handshake("PLAIN", 0)
            client.bare(token)
            _is_known(client)
            said.append(("bare", token, client.said))
    return said


def set_password(node: Secured, name: str, password: str, iterations: int = 4096) -> None:
    """For both mechanisms; return once it counts."""
    with Talk(node.plain) as admin:
        for kind, (mechanism, hash) in enumerate(HASHES.items(), 1):
            salt = mechanism.encode()
            request = AlterUserScramCredentialsRequest(
                upsertions=(
                    ScramCredentialUpsertion(
                        name=name,
                        mechanism=kind,
                        iterations=iterations,
                        salt=salt,
                        salted_password=hashlib.pbkdf2_hmac(
                            hash, password.encode(), salt, iterations
                        ),
                    ),
                )
            )
            answer = admin.ask_for(AlterUserScramCredentialsResponse, request, 0)
            assert not answer.results[0].error_code, answer
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            described = admin.ask_for(
                DescribeUserScramCredentialsResponse, DescribeUserScramCredentialsRequest(), 0
            )
            found = {each.user: each.credential_infos for each in described.results}
            if [each.iterations for each in found.get(name, ())] == [iterations] * 2:
                return
        raise AssertionError(f"{name} is not known")


def salted_passwords(node: Secured) -> list[Any]:
    set_password(node, "carol", "carol's")
    set_password(node, "d,=v", "dave", 8192)
    said: list[Any] = []
    for mechanism in MECHANISMS:
        cases = (
            ("carol", "carol's", "", ""),
            ("carol", "carol's", "", "a=carol"),
            ("carol", "carol's", "", "a=bob"),
            ("carol", "carol's", ",other=thing", ""),
            ("carol", "carol's", ",tokenauth=true", ""),
            ("carol", "carol's", ",tokenauth=false", ""),
            ("d=2C=3Dv", "dave", "", ""),
            ("d=2Cv", "dave", "", ""),
            ("carol", "wrong", "", ""),
            ("alice", PASSWORDS["alice"], "", ""),
            ("nobody", "wrong", "", ""),
        )
        for name, password, extensions, authorization in cases[:: 4 if said else 1]:
            scram = ScramClient(mechanism, name, password, extensions)
            with Saying(node.sasl) as client:
                client.handshake(mechanism)
                challenge = client.authenticate(scram.first(authorization))
                if challenge is not None:
                    message = client.authenticate(scram.final(challenge))
                    if message is not None:
                        client.said.append(scram.is_from_server(message))
                _is_known(client)
                said.append((mechanism, name, password, _without_nonces(client.said)))
    return said


def _without_nonces(said: list[Any]) -> list[Any]:
    """What a server adds is its own; so is, then, what it signs."""
    for each in said:
        if isinstance(each, dict) and each.get("auth_bytes"):
            text = base64.b64decode(each["auth_bytes"]).decode()
            if text.startswith("r="):
                nonce, *others = text.split(",")
                assert len(nonce) > 20
                each["auth_bytes"] = [nonce.startswith(f"r={NONCE}"), *others]
            else:
                each["auth_bytes"] = text[:2]
    return said


def odd_scram(node: Secured) -> list[Any]:
    set_password(node, "carol", "carol's")
    said: list[Any] = []
    for token in (
        b"",
        b"n,,n=carol",
        b"y,,n=carol,r=1",
        b"p=tls-unique,,n=carol,r=1",
        b"n,,n=ca=rol,r=1",
        b"n,,m=x,n=carol,r=1",
        "n,,n=ćarol,r=1".encode(),
        b"\xff\xfe",
    ):
        with Saying(node.sasl) as client:
            client.handshake("SCRAM-SHA-256")
            client.authenticate(token)
            _is_known(client)
            said.append((token, _without_nonces(client.said)))
    for nonce, shorter, cut in (
        ("other", 0, 0),
        (f"x{NONCE}", 0, 0),
        (None, 2, 0),
        (None, 32, 0),
        (None, 0, 5),
    ):
        scram = ScramClient("SCRAM-SHA-256", "carol", "carol's")
        with Saying(node.sasl) as client:
            client.handshake("SCRAM-SHA-256")
            challenge = client.authenticate(scram.first())
            assert challenge is not None
            final = scram.final(challenge, nonce=nonce, shorter=shorter)
            client.authenticate(final[: len(final) - cut])
            _is_known(client)
            said.append((nonce, shorter, cut, _without_nonces(client.said)))
    return said


def who_is_known_already(node: Secured) -> list[Any]:
    said: list[Any] = []
    for address in (node.plain, node.sasl):
        with Saying(address) as client:
            if address == node.sasl:
                client.log_in("alice", PASSWORDS["alice"])
            for version in (0, 1):
                client.say(SaslHandshakeRequest(mechanism="PLAIN"), version)
            for version in (0, 1, 2):
                client.say(SaslAuthenticateRequest(auth_bytes=b"token"), version)
            _is_known(client)
            said.append(client.said)
    return said


def _log_in(client: Saying, mechanism: str, name: str, password: str) -> None:
    scram = ScramClient(mechanism, name, password)
    client.handshake(mechanism)
    challenge = client.authenticate(scram.first())
    if challenge is not None:
        client.authenticate(scram.final(challenge))


def sessions_that_end(node: Secured) -> list[Any]:
    set_password(node, "carol", "carol's")
    set_password(node, "erin", "erin's")
    mechanism = "SCRAM-SHA-512"
    with (
        Saying(node.sasl) as ended,
        Saying(node.sasl) as again,
        Saying(node.sasl) as another,
        Saying(node.sasl) as by_other_means,
        Saying(node.sasl) as wrong,
    ):
        for client in (ended, again, another, by_other_means, wrong):
            _log_in(client, mechanism, "carol", "carol's")
            _is_known(client)
        _log_in(again, mechanism, "carol", "carol's")
        _is_known(again)
        again.handshake(mechanism)  # too soon
        _is_known(again)
        _log_in(another, mechanism, "erin", "erin's")
        by_other_means.handshake("PLAIN")
        by_other_means.authenticate(plain("alice", PASSWORDS["alice"]))
        _log_in(wrong, mechanism, "carol", "erin's")
        time.sleep(SESSION_MS / 1000 + 0.2)
        _is_known(ended)
        # The session is over, but it may still be begun again.
        _log_in(again, mechanism, "carol", "carol's")
        _is_known(again)
        clients = (ended, again, another, by_other_means, wrong)
        return [_without_nonces(client.said) for client in clients]


STORIES = (
    handshakes,
    what_comes_first,
    passwords,
    salted_passwords,
    odd_scram,
    who_is_known_already,
    sessions_that_end,
)


@pytest.mark.oracle
@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.__name__)
def test_kafka_answers_the_same(
    story: Callable[[Secured], list[Any]], kafka_secured: Secured, ours_secured: Secured
) -> None:
    theirs, mine = story(kafka_secured), story(ours_secured)
    for number, (expected, got) in enumerate(zip(theirs, mine, strict=True)):
        assert got == expected, f"answer {number}"


def test_a_wrong_password_is_answered_late(ours_secured: Secured) -> None:
    with Saying(ours_secured.sasl) as client:
        client.handshake("PLAIN")
        start = time.monotonic()
        client.authenticate(plain("alice", "wrong"))
        assert time.monotonic() - start >= FAILURE_MS / 1000
