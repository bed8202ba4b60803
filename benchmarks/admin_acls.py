"""A check among 10,000 ACLs, timed as the authorizer's own function, without a request around it.

Half of the ACLs are prefixes, a hundred users have them, and names have up to 70 characters.
"""

from __future__ import annotations

import time
from typing import Final

from kraftline.broker.authorization import Authorizer
from kraftline.broker.authorization.principal import Principal, user
from kraftline.metadata.access import Operation, Pattern, Permission, Resource
from kraftline.metadata.image import EMPTY, MetadataDelta
from kraftline.metadata.image.metadata import Provenance
from kraftline.metadata.loader import LeaderAndEpoch, LogDeltaManifest
from kraftline.schema.metadata.access_control_entry_record import AccessControlEntryRecord
from kraftline.schema.uuids import Uuid

COUNT: Final = 10_000


def check() -> tuple[float, float]:
    """Microseconds: of what was never asked before, and of what was."""
    authorizer = _authorizer()
    names = [f"{'t' * (n % 60)}topic-{n}-more" for n in range(1, 4001, 2)]
    # Each user once: nothing of what is measured first was decided before.
    new = min(_check(authorizer, names, user(f"u{each}")) for each in (1, 3, 5, 7, 9))
    again = min(_check(authorizer, names, user("u1")) for _ in range(5))
    return new, again


def _authorizer() -> Authorizer:
    delta = MetadataDelta(EMPTY)
    for number in range(COUNT):
        delta.replay(
            AccessControlEntryRecord(
                id=Uuid((number + 1).to_bytes(16, "big")),
                resource_type=Resource.TOPIC,
                resource_name=f"{'t' * (number % 60)}topic-{number}",
                pattern_type=(Pattern.LITERAL, Pattern.PREFIXED)[number % 2],
                principal=f"User:u{number % 100}",
                host="*",
                operation=Operation.READ,
                permission_type=Permission.ALLOW,
            )
        )
    image = delta.apply(Provenance(1, 1, 1, True))
    found = Authorizer(frozenset(), allows_without_acl=False)
    manifest = LogDeltaManifest(EMPTY.provenance, LeaderAndEpoch(None, -1), 1, 0, 0)
    found.on_metadata_update(delta, image, manifest)
    return found


def _check(authorizer: Authorizer, names: list[str], who: Principal) -> float:
    start = time.perf_counter()
    for name in names:
        authorizer.allows(who, "127.0.0.1", Operation.READ, Resource.TOPIC, name)
    return (time.perf_counter() - start) / len(names) * 1e6
