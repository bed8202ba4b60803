"""What ACLs allow, thousands of times beside Kafka's own authorizer; and how long a check takes."""

from __future__ import annotations

import time
from collections.abc import Sequence
from random import Random
from typing import Any, cast

import pytest

from kraftline.broker.authorization import Authorizer
from kraftline.broker.authorization.principal import java_host, parse_principal, user
from kraftline.metadata.access import Operation, Pattern, Permission, Resource
from kraftline.metadata.acl_filters import matching
from kraftline.metadata.image import EMPTY, MetadataDelta, MetadataImage
from kraftline.metadata.image.acls import Acl
from kraftline.metadata.image.metadata import Provenance
from kraftline.metadata.loader import LeaderAndEpoch, LogDeltaManifest
from kraftline.schema.api.describe_acls import DescribeAclsRequest
from kraftline.schema.metadata.access_control_entry_record import AccessControlEntryRecord
from kraftline.schema.metadata.remove_access_control_entry_record import (
    RemoveAccessControlEntryRecord,
)
from kraftline.schema.uuids import Uuid
from tests.effort import rounds
from tests.oracle.lines import LineProgram

SUPER_USERS = "User:root; User:admin;"
# Names that begin alike, and some that sort around `*`.
NAMES = ("a", "ab", "abc", "abd", "b", "*", "*a", "$", "", "abcabc", "kafka-cluster", "Ab", "é")
PRINCIPALS = ("User:alice", "User:bob", "User:*", "User:root", "Group:alice", "User:User:x")
HOSTS = ("*", "127.0.0.1", "10.0.0.1", "0:0:0:0:0:0:0:1", "::1")
ASKED_FROM = ("127.0.0.1", "10.0.0.1", "10.0.0.2", "::1")
TYPES = (2, 2, 3, 4, 5, 7)
OPERATIONS = (2, 2, *range(3, 16))
_MANIFEST = LogDeltaManifest(EMPTY.provenance, LeaderAndEpoch(None, -1), 1, 0, 0)


class AclDecisions(LineProgram):
    main = "AclDecisions"


def _acl(random: Random) -> list[Any]:
    return [
        random.choice(TYPES),
        random.choice([name for name in NAMES if name]),
        random.choice((Pattern.LITERAL, Pattern.PREFIXED)),
        random.choice(PRINCIPALS),
        random.choice(HOSTS),
        random.choice(OPERATIONS),
        random.choice((Permission.DENY, Permission.ALLOW, Permission.ALLOW)),
    ]


def _question(random: Random) -> list[Any]:
    # Nobody is called `*`: Kafka stumbles there.
    operation, kind = random.choice(OPERATIONS[2:]), random.choice(TYPES)
    name = random.choice((*(each for each in NAMES if each), None))
    who = random.choice([each for each in PRINCIPALS if each != "User:*"])
    return [who, random.choice(ASKED_FROM), operation, kind, name]


def _filter(random: Random) -> list[Any]:
    return [
        random.choice((1, *TYPES)),
        random.choice((None, *NAMES)),
        random.choice((1, 2, 3, 4)),
        random.choice((None, None, *PRINCIPALS)),
        random.choice((None, None, *HOSTS)),
        random.choice((1, 1, *OPERATIONS)),
        random.choice((1, 1, 2, 3)),
    ]


def _record(number: int, acl: Sequence[Any]) -> AccessControlEntryRecord:
    kind, name, pattern, principal, host, operation, permission = acl
    return AccessControlEntryRecord(
        id=Uuid(number.to_bytes(16, "big")),
        resource_type=kind,
        resource_name=name,
        pattern_type=pattern,
        principal=principal,
        host=host,
        operation=operation,
        permission_type=permission,
    )


def _publish(authorizer: Authorizer, image: MetadataImage, records: Sequence[Any]) -> MetadataImage:
    delta = MetadataDelta(image)
    for each in records:
        delta.replay(each)
    image = delta.apply(Provenance(image.offset + 1, 1, 1, True))
    authorizer.on_metadata_update(delta, image, _MANIFEST)
    return image


def _decided(authorizer: Authorizer, question: list[Any]) -> bool:
    who, host, operation, kind, name = question
    principal, host = parse_principal(who), java_host(host)
    if name is None:
        return authorizer.allows_some(principal, host, Operation(operation), Resource(kind))
    return authorizer.allows(principal, host, Operation(operation), Resource(kind), name)


@pytest.mark.oracle
def test_decisions_are_those_of_kafkas_authorizer() -> None:
    random = Random(7)
    with AclDecisions() as kafka:
        for _ in range(rounds(150)):
            everyone = random.random() < 0.3
            count = random.choice((0, 1, 3, 10, 40))
            acls = list({str(acl): acl for acl in (_acl(random) for _ in range(count))}.values())
            questions = [_question(random) for _ in range(60)]
            filters = [_filter(random) for _ in range(10)]
            said: Any = kafka.ask(
                {
                    "superUsers": SUPER_USERS,
                    "everyone": str(everyone).lower(),
                    "acls": cast(Any, acls),
                    "asks": cast(Any, questions),
                    "filters": cast(Any, filters),
                }
            )
            authorizer = Authorizer(
                frozenset({"User:root", "User:admin"}), allows_without_acl=everyone
            )
            image = _grown(authorizer, acls, random)
            for question, expected in zip(questions, said["decided"], strict=True):
                assert _decided(authorizer, question) is expected, (question, acls)
            firsts: dict[tuple[Any, ...], int] = {}
            for number, acl in enumerate(acls):
                firsts.setdefault(tuple(acl), number)
            for wanted, numbers in zip(filters, said["found"], strict=True):
                found = {firsts[_plain(acl)] for _, acl in matching(image.acls, _asked(wanted))}
                assert sorted(found) == numbers, wanted


def _grown(authorizer: Authorizer, acls: list[list[Any]], random: Random) -> MetadataImage:
    """The ACLs come one after the other, with others among them that go again."""
    image = EMPTY
    for number, acl in enumerate(acls):
        image = _publish(authorizer, image, [_record(number, acl), _record(1000, _acl(random))])
        image = _publish(
            authorizer, image, [RemoveAccessControlEntryRecord(id=Uuid((1000).to_bytes(16, "big")))]
        )
    return image


def _plain(acl: Acl) -> tuple[Any, ...]:
    return (
        acl.resource_type,
        acl.resource_name,
        acl.pattern_type,
        acl.principal,
        acl.host,
        acl.operation,
        acl.permission_type,
    )


def _asked(wanted: list[Any]) -> DescribeAclsRequest:
    kind, name, pattern, principal, host, operation, permission = wanted
    return DescribeAclsRequest(
        resource_type_filter=kind,
        resource_name_filter=name,
        pattern_type_filter=pattern,
        principal_filter=principal,
        host_filter=host,
        operation=operation,
        permission_type=permission,
    )


def test_a_resource_without_a_name_is_not_any_resource() -> None:
    authorizer = Authorizer(frozenset(), allows_without_acl=False)
    _publish(authorizer, EMPTY, [_record(1, [2, "t", Pattern.PREFIXED, "User:a", "*", 4, 3])])
    write = (user("a"), "127.0.0.1", Operation.WRITE, Resource.TOPIC)
    assert not authorizer.allows(*write, "")
    assert authorizer.allows_some(*write)
    assert not authorizer.allows(*write, "")


def test_a_check_among_ten_thousand_acls_takes_no_time() -> None:
    authorizer = Authorizer(frozenset(), allows_without_acl=False)
    kinds = (Pattern.LITERAL, Pattern.PREFIXED)
    records = [
        _record(n, [2, "t" * (n % 60) + f"topic-{n}", kinds[n % 2], f"User:u{n % 100}", "*", 3, 3])
        for n in range(10_000)
    ]
    _publish(authorizer, EMPTY, records)
    names = [f"{'t' * (n % 60)}topic-{n}-more" for n in range(1, 4001, 2)]
    # Each once: nothing of what is measured was decided before.
    best = min(
        _seconds(authorizer, names, user(f"u{each}")) / len(names) for each in (1, 3, 5, 7, 9)
    )
    assert best < 60e-6  # on a quiet machine it is a third of what is allowed: 20 µs
    again = min(_seconds(authorizer, names, user("u1")) / len(names) for _ in range(3))
    assert again < 20e-6


def _seconds(authorizer: Authorizer, names: list[str], who: Any) -> float:
    start = time.perf_counter()
    for name in names:
        authorizer.allows(who, "127.0.0.1", Operation.READ, Resource.TOPIC, name)
    return time.perf_counter() - start
