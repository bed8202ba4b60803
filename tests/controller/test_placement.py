"""Where replicas go: what must hold for any cluster, whatever the dice say."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kraftline.controller.placement import Usable, place, usable_brokers
from kraftline.controller.refusal import Refusal
from kraftline.schema import metadata as m
from kraftline.schema.api.error_codes import ErrorCode
from tests.controller.broker_stories import directory
from tests.controller.images import broker, image_of


def _brokers(*racks: str | None) -> list[Usable]:
    return [Usable(number, rack, False) for number, rack in enumerate(racks)]


@st.composite
def _clusters(draw: st.DrawFn) -> tuple[list[Usable], int]:
    racks = draw(st.lists(st.sampled_from([None, "a", "b", "c"]), min_size=1, max_size=9))
    fenced = draw(st.lists(st.booleans(), min_size=len(racks), max_size=len(racks)))
    fenced[draw(st.integers(0, len(racks) - 1))] = False
    known = [Usable(n, rack, fenced[n]) for n, rack in enumerate(racks)]
    return known, draw(st.integers(1, len(racks)))


@given(_clusters(), st.integers(1, 40), st.randoms(use_true_random=False))
def test_replicas_differ_and_the_first_one_is_up(
    cluster: tuple[list[Usable], int], partitions: int, random: Random
) -> None:
    brokers, replicas = cluster
    up = {each.id for each in brokers if not each.is_fenced}
    placed = place(brokers, partitions, replicas, random)
    assert len(placed) == partitions
    for each in placed:
        assert len(each) == len(set(each)) == replicas
        assert each[0] in up


@given(st.integers(1, 6), st.integers(1, 3), st.randoms(use_true_random=False))
def test_leaders_are_spread_evenly(brokers: int, rounds: int, random: Random) -> None:
    placed = place(_brokers(*[None] * brokers), brokers * rounds, 1, random)
    assert set(Counter(each[0] for each in placed).values()) == {rounds}


@given(st.randoms(use_true_random=False))
def test_replicas_are_in_as_many_racks_as_there_are(random: Random) -> None:
    brokers = _brokers("a", "a", "b", "b", "c", "c")
    racks = {each.id: each.rack for each in brokers}
    for each in place(brokers, 30, 3, random):
        assert {racks[number] for number in each} == {"a", "b", "c"}


@given(st.randoms(use_true_random=False))
def test_a_fenced_broker_is_only_used_where_others_do_not_suffice(random: Random) -> None:
    brokers = [Usable(0, None, True), Usable(1, None, False), Usable(2, None, False)]
    assert all(0 not in each for each in place(brokers, 10, 2, random))
    assert all(each[2] == 0 for each in place(brokers, 10, 3, random))


@pytest.mark.parametrize(
    ("brokers", "replicas", "said"),
    [
        ([], 1, "All brokers are currently fenced, or have all"),
        ([Usable(1, None, True)], 1, "All brokers are currently fenced, or have all"),
        (_brokers(None), 0, "Invalid replication factor 0: the replication factor must be"),
        (_brokers(None), 2, "The target replication factor of 2 cannot be reached because only 1"),
    ],
)
def test_too_few_brokers_are_refused(brokers: list[Usable], replicas: int, said: str) -> None:
    with pytest.raises(Refusal) as refused:
        place(brokers, 1, replicas, Random(1))
    assert refused.value.code == ErrorCode.INVALID_REPLICATION_FACTOR
    assert (refused.value.message or "").startswith(said)


def test_brokers_that_leave_or_take_nothing_new_are_not_usable() -> None:
    image = image_of(
        broker(1, rack="r"),
        broker(2, fenced=True),
        broker(3),
        broker(4),
        m.BrokerRegistrationChangeRecord(broker_id=3, broker_epoch=3, in_controlled_shutdown=1),
        m.BrokerRegistrationChangeRecord(
            broker_id=4, broker_epoch=4, cordoned_log_dirs=(directory(4),)
        ),
    )
    assert usable_brokers(image) == [Usable(1, "r", False), Usable(2, None, True)]
