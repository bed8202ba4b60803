"""For the same requests about users, rights, quotas and tokens, real Kafka's metadata log and ours
hold the same records, batch by batch."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from kraftline.schema.api.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasRequestEntityData,
    AlterClientQuotasRequestEntryData,
    OpData,
)
from kraftline.schema.api.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from kraftline.schema.api.create_acls import CreateAclsRequest
from kraftline.schema.api.delete_acls import DeleteAclsFilter, DeleteAclsRequest
from kraftline.schema.api.expire_delegation_token import ExpireDelegationTokenRequest
from kraftline.schema.api.renew_delegation_token import RenewDelegationTokenRequest
from kraftline.schema.types import Message
from tests.broker.talking import Talk
from tests.controller.metadata_log import LoggedBatch, end_offset, read_batches
from tests.security.access import acl, set_acls
from tests.security.secured import Secured
from tests.security.test_tokens_like_kafka import HOUR, User, make

pytestmark = pytest.mark.oracle
TOPIC, GROUP, CLUSTER = 2, 3, 4
PREFIXED, DENY = 4, 2
USER, CLIENT_ID, IP = "user", "client-id", "ip"


def _quotas(
    *entries: tuple[dict[str, str | None], dict[str, float | None]], validate_only: bool = False
) -> AlterClientQuotasRequest:
    return AlterClientQuotasRequest(
        entries=tuple(
            AlterClientQuotasRequestEntryData(
                entity=tuple(
                    AlterClientQuotasRequestEntityData(entity_type=kind, entity_name=name)
                    for kind, name in entity.items()
                ),
                ops=tuple(
                    OpData(key=key, value=value or 0.0, remove=value is None)
                    for key, value in ops.items()
                ),
            )
            for entity, ops in entries
        ),
        validate_only=validate_only,
    )


def _passwords(
    deletions: tuple[tuple[str, int], ...] = (), **upsertions: int
) -> AlterUserScramCredentialsRequest:
    return AlterUserScramCredentialsRequest(
        deletions=tuple(
            ScramCredentialDeletion(name=name, mechanism=kind) for name, kind in deletions
        ),
        upsertions=tuple(
            ScramCredentialUpsertion(
                name=name, mechanism=kind, iterations=4096, salt=b"salt", salted_password=b"word"
            )
            for name, kind in upsertions.items()
        ),
    )


def _gone(kind: int, name: str | None, pattern: int) -> DeleteAclsFilter:
    return DeleteAclsFilter(
        resource_type_filter=kind,
        resource_name_filter=name,
        pattern_type_filter=pattern,
        principal_filter=None,
        host_filter=None,
        operation=1,
        permission_type=1,
    )


def _requests() -> Iterator[tuple[Message, int]]:
    several = (
        acl(TOPIC, "t", 3),
        acl(TOPIC, "t", 3),
        acl(TOPIC, "p", 4, pattern=PREFIXED, permission=DENY, host="10.0.0.1"),
        acl(CLUSTER, "other", 8),
        acl(CLUSTER, "kafka-cluster", 8, principal="User:bob"),
    )
    yield CreateAclsRequest(creations=several), 3
    yield CreateAclsRequest(creations=several[:1]), 1  # is there already
    yield CreateAclsRequest(creations=(acl(GROUP, "*", 2),)), 2
    yield DeleteAclsRequest(filters=(_gone(GROUP, None, 1), _gone(GROUP, "*", 3))), 3
    yield DeleteAclsRequest(filters=(_gone(TOPIC, "nothing", 2),)), 3
    yield DeleteAclsRequest(filters=(_gone(TOPIC, "px", 2),)), 3
    both: dict[str, str | None] = {USER: "ivan", CLIENT_ID: None}
    rates: dict[str, float | None] = {
        "producer_byte_rate": 1e9,
        "consumer_byte_rate": 2e9,
        "request_percentage": 12345.5,
        "controller_mutation_rate": 1e6,
    }
    yield _quotas((both, rates)), 1
    yield _quotas((both, rates)), 1  # nothing new
    yield _quotas((both, {**rates, "request_percentage": 50000.0})), 0
    some: dict[str, float | None] = {"producer_byte_rate": None, "consumer_byte_rate": 3e9}
    yield _quotas((both, some), ({USER: "judy"}, {"no_such": 1.0}), ({IP: None}, {})), 1
    yield _quotas(({IP: "127.0.0.1"}, {"connection_creation_rate": 1e6})), 1
    yield _quotas(({IP: "127.0.0.1"}, {"connection_creation_rate": 1e5}), validate_only=True), 1
    yield _quotas(({IP: "127.0.0.1"}, {"connection_creation_rate": None}), (both, some)), 1
    yield _quotas((both, dict.fromkeys(rates))), 1
    yield _passwords(ivan=1, judy=2, kate=1), 0
    yield _passwords((("ivan", 1), ("ivan", 2)), judy=1), 0
    yield _passwords((("ivan", 1), ("nobody", 1)), kate=3), 0
    yield _passwords((("judy", 1),)), 0
    yield _passwords((("judy", 2), ("kate", 1))), 0


def _told(node: Secured) -> list[Any]:
    set_acls(node, [])
    start = end_offset(node.data)
    with Talk(node.plain) as admin:
        for request, version in _requests():
            admin.ask(request, version)
    with User(node, "alice") as alice:
        made = alice.token(make(renewers=("bob", "carol"), life=2 * HOUR))
        alice.ask(RenewDelegationTokenRequest(hmac=made.hmac, renew_period_ms=HOUR), 2)
        alice.ask(ExpireDelegationTokenRequest(hmac=made.hmac, expiry_time_period_ms=HOUR), 2)
        alice.ask(ExpireDelegationTokenRequest(hmac=made.hmac, expiry_time_period_ms=-1), 2)
    known: dict[str, str] = {}
    return [_plain(batch, known) for batch in read_batches(node.data, start)]


def _plain(batch: LoggedBatch, known: dict[str, str]) -> list[Any]:
    """Without ids and times; what is removed by its id is told by what it was."""
    found = []
    for kind, data in batch:
        plain = dict(data)
        if kind.startswith("ACCESS_CONTROL"):
            known[data["id"]] = str({key: each for key, each in data.items() if key != "id"})
        if "id" in plain:
            plain["id"] = known[plain["id"]]
        if "tokenId" in plain:
            plain["tokenId"] = "a token"
        if "issueTimestamp" in plain:
            for name in ("maxTimestamp", "expirationTimestamp"):
                plain[name] = round((plain[name] - data["issueTimestamp"]) / 60_000)
            del plain["issueTimestamp"]
        found.append((kind, plain))
    # Kafka removes ACLs in the order of a set.
    return sorted(found, key=str) if found[0][0].startswith("REMOVE_ACCESS") else found


def test_the_logs_hold_the_same(kafka_secured: Secured, ours_secured: Secured) -> None:
    theirs, mine = _told(kafka_secured), _told(ours_secured)
    for number, (expected, got) in enumerate(zip(theirs, mine, strict=False)):
        assert got == expected, f"batch {number}"
    assert len(mine) == len(theirs)
