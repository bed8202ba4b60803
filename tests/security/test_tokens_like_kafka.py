"""Delegation tokens: made, shown, used, prolonged and ended, by real Kafka and by us."""

from __future__ import annotations

import base64
import time
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from kraftline.schema.api.create_delegation_token import (
    CreatableRenewers,
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
)
from kraftline.schema.api.describe_delegation_token import (
    DescribeDelegationTokenOwner,
    DescribeDelegationTokenRequest,
    DescribeDelegationTokenResponse,
)
from kraftline.schema.api.expire_delegation_token import ExpireDelegationTokenRequest
from kraftline.schema.api.renew_delegation_token import RenewDelegationTokenRequest
from kraftline.schema.types import Message
from tests.broker.talking import Talk
from tests.security.access import acl, set_acls
from tests.security.saying import Saying, ScramClient
from tests.security.secured import PASSWORDS, Secured

ALL = DescribeDelegationTokenRequest(owners=None)
USER_RESOURCE, CREATE_TOKENS, DESCRIBE_TOKENS = 7, 13, 14
HOUR = 3_600_000


def make(
    *, owner: str | None = None, kind: str = "User", renewers: tuple[str, ...] = (), life: int = -1
) -> CreateDelegationTokenRequest:
    return CreateDelegationTokenRequest(
        owner_principal_type="" if owner is None else kind,
        owner_principal_name="" if owner is None else owner,
        renewers=tuple(
            CreatableRenewers(principal_type="User", principal_name=each) for each in renewers
        ),
        max_lifetime_ms=life,
    )


class User(Talk):
    """One who has logged in; `said` is what it is told, with times since the token was made."""

    def __init__(self, node: Secured, name: str) -> None:
        super().__init__(node.sasl)
        self.said: list[Any] = []
        client = Saying(node.sasl)
        client.log_in(name, PASSWORDS[name])
        self.socket.close()
        self.socket = client.socket

    def say(self, request: Message, version: int, since: int = 0) -> Message:
        answer = self.ask(request, version)
        self.said.append(_plain(answer, since))
        return answer

    def token(self, request: CreateDelegationTokenRequest) -> CreateDelegationTokenResponse:
        """A new one, once the broker knows it."""
        made = self.say(request, 3)
        assert isinstance(made, CreateDelegationTokenResponse)
        while not made.error_code:
            shown = self.ask_for(DescribeDelegationTokenResponse, ALL, 3)
            if made.token_id in [each.token_id for each in shown.tokens]:
                break
        return made


def _plain(answer: Message, since: int = 0) -> Any:
    found: Any = msgspec.to_builtins(answer, enc_hook=str)
    for each in (found, *found.get("tokens", ())):
        if each.get("token_id"):
            since = each.get("issue_timestamp_ms") or each.get("issue_timestamp")
        for name in list(each):
            if name.endswith(("timestamp", "timestamp_ms")) and each[name] > 0:
                # To the minute: nobody is that slow.
                each[name] = round((each[name] - since) / 60_000)
            elif name in ("token_id", "hmac"):
                each[name] = len(each[name])
    if "tokens" in found:
        found["tokens"] = sorted(found["tokens"], key=str)
    return found


def tokens_of_ones_own(node: Secured) -> list[Any]:
    set_acls(node, [])
    with User(node, "alice") as alice, User(node, "bob") as bob:
        for version in (1, 2):
            alice.say(make(renewers=("bob",)), version)
        made = alice.token(make(renewers=("bob", "carol"), life=2 * HOUR))
        alice.token(make(life=HOUR))
        for version in (1, 2, 3):
            for user in (alice, bob):
                user.say(ALL, version)
        owners = [DescribeDelegationTokenOwner(principal_type="User", principal_name="alice")]
        for user in (alice, bob):
            user.say(DescribeDelegationTokenRequest(owners=tuple(owners)), 3)
            user.say(DescribeDelegationTokenRequest(owners=()), 3)
        since = made.issue_timestamp_ms
        for user in (alice, bob):
            for period in (-1, HOUR, 100 * HOUR):
                request = RenewDelegationTokenRequest(hmac=made.hmac, renew_period_ms=period)
                user.say(request, 2, since)
        alice.say(RenewDelegationTokenRequest(hmac=b"nothing", renew_period_ms=1), 1)
        alice.say(ExpireDelegationTokenRequest(hmac=b"nothing", expiry_time_period_ms=-1), 1)
        for period in (HOUR, 0, -1, -1):
            expiry = ExpireDelegationTokenRequest(hmac=made.hmac, expiry_time_period_ms=period)
            bob.say(expiry, 2, since)
            time.sleep(0.1)
        return [*alice.said, *bob.said]


def tokens_of_others(node: Secured) -> list[Any]:
    set_acls(node, [])
    with User(node, "alice") as alice, User(node, "bob") as bob, User(node, "admin") as admin:
        for owner, kind in (("bob", "User"), ("alice", "User"), ("bob", "Group")):
            alice.say(make(owner=owner, kind=kind), 3)
        made = admin.token(make(owner="bob"))
        since = made.issue_timestamp_ms
        # Who made it for another can do nothing with it.
        for user in (admin, alice, bob):
            user.say(RenewDelegationTokenRequest(hmac=made.hmac, renew_period_ms=-1), 2, since)
        set_acls(
            node,
            [acl(USER_RESOURCE, "User:bob", each) for each in (CREATE_TOKENS, DESCRIBE_TOKENS)],
        )
        alice.token(make(owner="bob"))
        bob.said.append(len(bob.ask_for(DescribeDelegationTokenResponse, ALL, 3).tokens) > 1)
        strange = CreateDelegationTokenRequest(
            owner_principal_name=None,
            owner_principal_type=None,
            renewers=(CreatableRenewers(principal_type="Group", principal_name="x"),),
        )
        alice.say(strange, 3)
        return [*alice.said, *bob.said, *admin.said]


def tokens_as_passwords(node: Secured) -> list[Any]:
    set_acls(node, [])
    said: list[Any] = []
    with User(node, "alice") as alice:
        made = alice.token(make(life=HOUR))
    password = base64.b64encode(made.hmac).decode()
    for mechanism in ("SCRAM-SHA-256", "SCRAM-SHA-512"):
        for word, extension in (
            (password, ",tokenauth=true"),
            ("wrong", ",tokenauth=true"),
            (password, ""),
        ):
            scram = ScramClient(mechanism, made.token_id, word, extension)
            with Saying(node.sasl) as client:
                client.handshake(mechanism)
                challenge = client.authenticate(scram.first())
                if challenge is not None and client.authenticate(scram.final(challenge)):
                    client.say(make(), 3)
                    client.say(RenewDelegationTokenRequest(hmac=made.hmac), 2)
                    client.say(ExpireDelegationTokenRequest(hmac=made.hmac), 2)
                    client.say(ALL, 3)
                for each in client.said:
                    if isinstance(each, dict) and "auth_bytes" in each:
                        each["auth_bytes"] = len(each["auth_bytes"]) > 0
                        # As long as the token lives, unless sessions are shorter.
                        each["session_lifetime_ms"] = round(each["session_lifetime_ms"] / 100_000)
                said.append(client.said)
    return said


def on_a_plain_listener(node: Secured) -> list[Any]:
    with Talk(node.plain) as client:
        return [
            _plain(client.ask(request, version))
            for request, versions in (
                (make(), (1, 2, 3)),
                (RenewDelegationTokenRequest(), (1, 2)),
                (ExpireDelegationTokenRequest(), (1, 2)),
                (ALL, (1, 2, 3)),
            )
            for version in versions
        ]


STORIES = (tokens_of_ones_own, tokens_of_others, tokens_as_passwords, on_a_plain_listener)


@pytest.mark.oracle
@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.__name__)
def test_kafka_answers_the_same(
    story: Callable[[Secured], list[Any]], kafka_secured: Secured, ours_secured: Secured
) -> None:
    theirs, mine = story(kafka_secured), story(ours_secured)
    for number, (expected, got) in enumerate(zip(theirs, mine, strict=True)):
        assert got == expected, f"answer {number}"
