"""A user with some rights asks for anything at all, of real Kafka and of us: both refuse the same,
and tell the same of the rest."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from random import Random
from typing import Any, Final

import pytest

from kraftline.broker.registry import MODULES, answered
from kraftline.schema.api.error_codes import ErrorCode
from kraftline.schema.api.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from kraftline.schema.api.registry import request_class
from tests.effort import rounds
from tests.recorder import node_cases
from tests.recorder.any_request import GROUPS, any_request
from tests.recorder.compare import FREE, NORMAL, Field, Normal, loose_differences
from tests.recorder.frames import answered as decoded
from tests.recorder.frames import frame
from tests.recorder.live import Ended, Live
from tests.security.access import acl, set_acls
from tests.security.saying import Saying
from tests.security.secured import PASSWORDS, Secured

pytestmark = pytest.mark.oracle

METADATA, API_VERSIONS, SASL_HANDSHAKE, INIT_PRODUCER_ID = 3, 18, 17, 22
TOPIC, GROUP, CLUSTER, TRANSACTIONAL_ID = 2, 3, 4, 5
LITERAL, PREFIXED = 3, 4
# They are told of in a story of their own: ids and times of each are its own.
_TOKENS: Final = (38, 39, 40, 41)
# Metadata before version 4 makes topics, sooner or later.
_FIRST: Final = {METADATA: 4}


def _message(value: str | None) -> str | None:
    """Who is refused is told in each one's own words."""
    if (
        not value
        or value.startswith("Request Request(")
        or value == "Cluster authorization failed."
    ):
        return None
    return value


_FREE: Final[Mapping[Field, Normal]] = {
    **NORMAL,
    **FREE,
    "error_message": _message,
    "documentation": lambda value: value is not None,
    "cluster_id": lambda value: value is not None,
    "log_dir": lambda value: "somewhere",
    "total_bytes": lambda value: 0,
    "usable_bytes": lambda value: 0,
    "session_id": lambda value: value != 0,
    "InitProducerIdResponse.producer_id": lambda value: value >= 0,
    "ApiVersionsResponse.api_keys": lambda keys: [k for k in keys if k.api_key in MODULES],
}


class User:
    """Alice, at one of the two; ids of topics are asked for by one who may."""

    def __init__(self, node: Secured) -> None:
        self.node = node
        self._knowing = Live(node.bootstrap)
        self._talk: Saying | None = None

    def topic_id(self, name: str) -> Any:
        return self._knowing.topic_id(name)

    def ask(self, request: Any, key: int, version: int) -> Any:
        if self._talk is None:
            self._talk = Saying(self.node.sasl)
            self._talk.log_in("alice", PASSWORDS["alice"])
        asked = frame(request, key, version)
        try:
            self._talk.socket.sendall(len(asked).to_bytes(4, "big") + asked)
            return decoded(self._talk.frame(), key, version)
        except Exception as problem:
            self.close()
            raise Ended from problem

    def create_topics(self) -> None:
        self._knowing.create_topics(**node_cases.TOPICS)
        self._knowing.wait_for_coordinators(GROUPS)
        while True:
            said = self._knowing.ask(
                InitProducerIdRequest(transactional_id=None), INIT_PRODUCER_ID, 4
            )
            assert isinstance(said, InitProducerIdResponse)
            if said.error_code != ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
                return

    def close(self) -> None:
        if self._talk is not None:
            self._talk.socket.close()
            self._talk = None

    def end(self) -> None:
        self.close()
        self._knowing.close()


@pytest.fixture(scope="module")
def alice(kafka_secured: Secured, ours_secured: Secured) -> Iterator[tuple[User, User]]:
    both = User(ours_secured), User(kafka_secured)
    for each in both:
        each.create_topics()
    yield both
    for each in both:
        each.end()


def _rights(random: Random) -> list[Any]:
    """Some that matter to the topics that are asked for."""
    found = {}
    for _ in range(random.choice((0, 2, 6, 12))):
        kind = random.choice((TOPIC, TOPIC, TOPIC, CLUSTER, GROUP, TRANSACTIONAL_ID))
        name, pattern = "kafka-cluster", LITERAL
        if kind != CLUSTER:
            name, pattern = random.choice(
                (
                    ("one", LITERAL),
                    ("three", LITERAL),
                    ("*", LITERAL),
                    ("t", PREFIXED),
                    ("n", PREFIXED),
                    ("nowhere", LITERAL),
                )
            )
        made = acl(
            kind,
            name,
            random.choice((2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12)),
            pattern=pattern,
            permission=random.choice((3, 3, 3, 2)),
            principal=random.choice(("User:alice", "User:alice", "User:*", "User:bob")),
        )
        found[str(made)] = made
    return list(found.values())


@pytest.mark.parametrize("seed", range(rounds(5)))
def test_a_user_is_told_what_kafka_would_tell(alice: tuple[User, User], seed: int) -> None:
    random = Random(seed)
    rights = _rights(random)
    for each in alice:
        set_acls(each.node, rights)
    wrong: list[str] = []
    for key, name in MODULES.items():
        versions = answered(key)
        assert versions is not None
        if key in _TOKENS:
            continue
        first = max(versions.first, _FIRST.get(key, 0))
        for version in {first, random.randint(first, versions.last), versions.last}:
            kind, number = request_class(key), random.randrange(1 << 20)
            asked = [any_request(kind, version, number, each) for each in alice]
            if getattr(asked[0], "users", ()) is None:
                continue  # one who may not ask for all users is never answered by Kafka
            ours, kafkas = (
                _said(each, request, key, version)
                for each, request in zip(alice, asked, strict=True)
            )
            if isinstance(kafkas, str) or isinstance(ours, str):
                found = [] if ours == kafkas else [f"we say {ours}, Kafka {kafkas}"]
            else:
                found = loose_differences(ours, kafkas, _FREE)
            wrong += [f"{name} {version}: {each}; {asked[0]}" for each in found]
    assert not wrong, "\n".join([str(rights), *wrong])


def _said(user: User, request: Any, key: int, version: int) -> Any:
    try:
        return user.ask(request, key, version)
    except Ended:
        return "closed"
