"""How a partition changes with its replicas: by hand, and thousands of times beside Kafka's own
builder of such changes."""

from __future__ import annotations

from random import Random
from typing import Any

import msgspec
import pytest

from kraftline.controller.partition_changes import Circumstances, Election, partition_change
from kraftline.metadata.features import from_level
from kraftline.metadata.partition import PartitionRegistration, Unusual
from kraftline.schema.jsonform import to_json
from kraftline.schema.metadata.partition_change_record import PartitionChangeRecord
from kraftline.schema.uuids import Uuid
from tests.oracle.lines import LineProgram

_TOPIC = Uuid((500).to_bytes(16, "big"))
_CHANGES = 20_000


class PartitionChanges(LineProgram):
    main = "PartitionChanges"


def _directory(broker: int) -> Uuid:
    return Uuid((1000 + broker).to_bytes(16, "big"))


def _change(asked: dict[str, Any]) -> tuple[PartitionChangeRecord, int] | None:
    before = PartitionRegistration(
        replicas=tuple(asked["replicas"]),
        directories=tuple(map(_directory, asked["replicas"])),
        isr=tuple(asked["isr"]),
        leader=asked["leader"],
        leader_epoch=3,
        partition_epoch=4,
        unusual=Unusual(
            leader_recovery_state=asked["recovery"],
            removing_replicas=tuple(asked["removing"]),
            adding_replicas=tuple(asked["adding"]),
            elr=tuple(asked["elr"]),
            last_known_elr=tuple(asked["lastKnownElr"]),
        ),
    )
    around = Circumstances(
        version=from_level(asked["level"]),
        has_elr=asked["hasElr"],
        min_isr=asked["minIsr"],
        may_lead=lambda broker, partition: broker in asked["mayLead"],
        directory_of=_directory,
        election=Election[asked["election"]],
        lost_data=asked["lostData"],
    )
    found = partition_change(before, around, isr=tuple(asked["targetIsr"]))
    if found is None:
        return None
    found = msgspec.structs.replace(found, topic_id=_TOPIC, partition_id=7)
    return found, around.version.partition_change_record_version


def _drawn(random: Random) -> dict[str, Any]:
    """A partition in any state that a log may hold, and something that happens to it."""
    replicas = random.sample((1, 2, 3, 4, 5, 17, 33), random.randint(1, 5))
    isr = random.sample(replicas, random.randint(0, len(replicas)))
    has_elr = random.random() < 0.7
    out = [each for each in replicas if each not in isr]
    elr = random.sample(out, random.randint(0, len(out))) if has_elr else []
    moving = random.random() < 0.4
    return {
        "replicas": replicas,
        "isr": isr,
        "elr": elr,
        "lastKnownElr": random.sample(replicas, random.randint(0, 1)) if has_elr else [],
        "removing": random.sample(replicas, random.randint(0, len(replicas))) if moving else [],
        "adding": random.sample(replicas, random.randint(0, len(replicas))) if moving else [],
        "leader": random.choice([*isr, *isr, -1]),
        "recovery": random.choice((0, 0, 1)),
        "mayLead": random.sample(replicas, random.randint(0, len(replicas))),
        # Eligible replicas can only be written from level 23 on.
        "level": random.choice((23, 26, 30)) if has_elr else random.choice((7, 12, 16, 17, 30)),
        "minIsr": random.randint(1, 3),
        "hasElr": has_elr,
        "election": random.choice(("ONLINE", "ONLINE", "UNCLEAN", "PREFERRED")),
        "targetIsr": random.choice(
            (isr, random.sample(replicas, random.randint(0, len(replicas))))
        ),
        "lostData": random.sample(replicas, random.randint(0, 1)) if has_elr else [],
    }


@pytest.mark.oracle
def test_every_change_is_kafkas() -> None:
    random = Random(4)
    with PartitionChanges() as kafka:
        for _ in range(_CHANGES):
            asked = _drawn(random)
            expected = kafka.ask(asked)
            found = _change(asked)
            ours = {} if found is None else {"version": found[1], "record": to_json(*found)}
            assert ours == expected, asked


def _asked(**changes: Any) -> dict[str, Any]:
    usual = {
        "replicas": [1, 2, 3],
        "isr": [1, 2, 3],
        "elr": [],
        "lastKnownElr": [],
        "removing": [],
        "adding": [],
        "leader": 1,
        "recovery": 0,
        "mayLead": [1, 2, 3],
        "level": 30,
        "minIsr": 2,
        "hasElr": True,
        "election": "ONLINE",
        "targetIsr": [1, 2, 3],
        "lostData": [],
    }
    return usual | changes


def _record(**changes: Any) -> PartitionChangeRecord | None:
    found = _change(_asked(**changes))
    return None if found is None else found[0]


def _expected(**fields: Any) -> PartitionChangeRecord:
    return PartitionChangeRecord(partition_id=7, topic_id=_TOPIC, **fields)


def test_nothing_is_written_where_nothing_changes() -> None:
    assert _record() is None


def test_the_next_replica_in_sync_leads_when_the_leader_goes() -> None:
    gone = {"mayLead": [2, 3], "targetIsr": [2, 3]}
    assert _record(**gone) == _expected(isr=(2, 3), leader=2)


def test_whoever_leaves_a_small_set_stays_eligible() -> None:
    assert _record(isr=[1, 2], targetIsr=[2], mayLead=[2, 3]) == _expected(
        isr=(2,), leader=2, eligible_leader_replicas=(1,)
    )


def test_the_last_in_sync_leaves_an_empty_set_and_is_remembered() -> None:
    assert _record(replicas=[1], isr=[1], minIsr=1, targetIsr=[], mayLead=[]) == _expected(
        isr=(), leader=-1, eligible_leader_replicas=(1,), last_known_elr=(1,)
    )


def test_without_eligible_leaders_the_last_in_sync_stays_so() -> None:
    one = {"replicas": [1], "isr": [1], "minIsr": 1, "targetIsr": [], "mayLead": []}
    assert _record(**one, hasElr=False) == _expected(leader=-1)


def test_an_eligible_replica_leads_cleanly() -> None:
    assert _record(isr=[], targetIsr=[], leader=-1, elr=[3], lastKnownElr=[1]) == _expected(
        isr=(3,), leader=3, eligible_leader_replicas=(), last_known_elr=()
    )


def test_the_last_known_leader_recovers_when_nobody_is_eligible() -> None:
    assert _record(isr=[], targetIsr=[], leader=-1, lastKnownElr=[2]) == _expected(
        isr=(2,), leader=2, leader_recovery_state=1, last_known_elr=()
    )


def test_an_unclean_election_takes_anyone_who_is_up() -> None:
    away = {"isr": [1], "targetIsr": [1], "mayLead": [3], "hasElr": False}
    assert _record(**away) == _expected(leader=-1)
    assert _record(**away, election="UNCLEAN") == _expected(
        isr=(3,), leader=3, leader_recovery_state=1
    )


def test_old_versions_raise_the_epoch_when_the_set_shrinks() -> None:
    smaller = {"hasElr": False, "targetIsr": [1, 2]}
    assert _record(**smaller, level=11) == _expected(isr=(1, 2), leader=1)
    assert _record(**smaller, level=12) == _expected(isr=(1, 2))
