"""What the top of the page says: the worst first, with from, to and how long."""

from __future__ import annotations

from kraftline.report.summary import BAD, FINE, WARN
from tests.report.nights import (
    Row,
    bad,
    broker,
    change,
    commits,
    covered,
    quiet,
    segment,
    tables,
    trouble,
)
from tests.report.telling import said_of


def sentences(rows: dict[str, list[Row]]) -> list[str]:
    night = {**quiet(), **{name: tables(rows)[name] for name in rows}}
    return [each.text for each in said_of(night).sentences]


def test_a_quiet_night_says_so_and_nothing_more() -> None:
    said = said_of(quiet())
    assert said.level == FINE
    assert said.headline == "Nothing was wrong"
    assert said.now == (
        "At the end all is well: 3 of 3 brokers in service, "
        "3 partitions of 1 topic with a leader and all replicas in sync."
    )
    assert said.sentences == []


def test_the_worst_comes_first() -> None:
    said = said_of(bad())
    assert said.level == BAD
    assert said.headline == (
        "audit-0 had no leader for 10 min; broker 3 was lost; records may be lost"
    )
    assert [each.label for each in said.sentences] == [
        "offline",
        "data loss?",
        "refused writes",
        "broker",
        "broker",
        "replicas",
        "replicas",
        "group",
        "moved",
        "not covered",
        "changed",
        "changed",
    ]
    assert said.now.startswith("At the end all is well")


def test_an_offline_partition_has_from_to_and_how_long() -> None:
    assert sentences({"health": [trouble("offline", "audit-0", 600, 1200)]}) == [
        "audit-0 had no leader for 10 min (03:10:00 to 03:20:00): nobody could write or read there."
    ]


def test_what_is_wrong_still_is_said_before_all_else() -> None:
    night = {
        **quiet(),
        **{
            name: tables(
                {
                    "health": [trouble("offline", "audit-0", 600, None)],
                    "brokers": broker(1, (0, 600, "up"), (600, None, "fenced")),
                }
            )[name]
            for name in ("health", "brokers")
        },
    }
    said = said_of(night)
    assert said.now_level == BAD
    assert said.now == (
        "Still wrong at the end: 1 broker of 1 out of service and 1 partition without a leader "
        "(of 3 partitions of 1 topic)."
    )
    assert said.sentences[1].text == "Broker 1 is lost (since 03:10:00) and is not back."


def test_partitions_in_trouble_at_once_are_told_together() -> None:
    rows = [trouble("offline", f"orders-{n}", 60 + n, 120 + n) for n in range(30)]
    (text,) = sentences({"health": rows})
    assert text == (
        "30 partitions of 1 topic (orders-0, orders-1, orders-10 and 27 more) had no leader for "
        "1 min 29 s in all, none of them longer than 1 min (03:01:00 to 03:02:29): "
        "nobody could write or read there."
    )


def test_many_times_of_trouble_become_a_number() -> None:
    rows = [trouble("offline", "orders-0", 100 * n, 100 * n + 10 + n) for n in range(9)]
    night = {**quiet(), "health": tables({"health": rows})["health"]}
    said = said_of(night)
    assert said.headline == "Partitions were without a leader 9 times, for up to 18 s"
    assert [each.text for each in said.sentences][-1] == (
        "6 times more partitions were without a leader, for at most 15 s."
    )


def test_a_partition_that_is_offline_is_not_told_of_as_short_of_replicas_too() -> None:
    rows = [
        trouble("offline", "audit-0", 600, 1200),
        trouble("under min ISR", "audit-0", 600, 1200),
        trouble("under min ISR", "orders-0", 600, 660),
    ]
    texts = sentences({"health": rows})
    assert len(texts) == 2
    assert texts[1].startswith("orders-0 had fewer replicas in sync than min.insync.replicas")


def test_a_clean_restart_is_not_a_loss() -> None:
    rows = broker(2, (0, 60, "up"), (60, 65, "leaving"), (65, 90, "left"), (90, 95, "new"),
                  (95, None, "up"))  # fmt: skip
    (text,) = sentences({"brokers": rows})
    assert text == "Broker 2 was shut down cleanly and was back after 35 s (03:01:00 to 03:01:35)."


def test_a_broker_that_was_lost_more_than_once_is_told_of_once() -> None:
    rows = broker(2, (0, 60, "up"), (60, 90, "fenced"), (90, 120, "up"), (120, 135, "fenced"),
                  (135, None, "up"))  # fmt: skip
    assert sentences({"brokers": rows}) == [
        "Broker 2 was lost twice, for 45 s in all (03:01:00 to 03:01:30, 03:02:00 to 03:02:15)."
    ]


def test_who_may_do_what_is_one_sentence() -> None:
    rows = [
        change(60, "acl.added", "User:a", "ACL added: allow a"),
        change(61, "acl.added", "User:b", "ACL added: allow b"),
        change(90, "scram.removed", "user a", "credentials of user a removed"),
    ]
    assert sentences({"changes": rows}) == [
        "Access and quotas: 2 ACLs added and 1 credential removed (03:01:00 to 03:01:30)."
    ]


def test_a_broker_that_joins_was_not_out_of_service() -> None:
    assert sentences({"brokers": broker(4, (60, 70, "new"), (70, None, "up"))}) == []


def test_a_group_that_stopped_is_named_with_how_far_it_is_behind() -> None:
    rows: dict[str, list[Row]] = {
        "group_offsets": [
            *commits("analytics", "orders", (60, 10, 100), (1200, 900, 2000)),
            *commits("billing", "orders", (60, 10, 100), (3590, 8990, 10)),
        ],
        "topic_sizes": [segment("orders", 9000, 4_000_000, 0, 3600)],
    }
    assert sentences(rows) == [
        "Group analytics has committed nothing since 03:20:00 "
        "and is 8,100 records behind in orders."
    ]


def test_changes_are_named_and_many_of_a_kind_counted() -> None:
    rows = [
        change(60, "topic.deleted", "topic old", "topic old deleted"),
        *(change(90, "config.set", "topic t", f"retention.ms of topic t{n} set") for n in range(7)),
    ]
    assert sentences({"changes": rows}) == [
        "Topic old deleted (03:01:00).",
        "7 configs were set (03:01:30): retention.ms of topic t0 set, "
        "retention.ms of topic t1 set, retention.ms of topic t2 set and 4 more.",
    ]


def test_gaps_make_a_warning() -> None:
    said = said_of({**quiet(), "coverage": tables({"coverage": [
        covered(0, 100), covered(100, 200, "gap"), covered(200, 3600)]})["coverage"]})  # fmt: skip
    assert said.level == WARN
    assert said.headline == "The cluster was well; some things want a look"


def test_a_window_tells_only_of_its_own_time() -> None:
    said = said_of(bad(), 2300, 2500)
    assert [each.label for each in said.sentences] == ["broker", "replicas", "not covered"]
    assert said_of(bad(), 700, 800).headline.startswith("audit-0 had no leader for 1 min 40 s")


def test_nobody_knows_how_long_trouble_went_on_after_the_data_ends() -> None:
    rows = [trouble("offline", "orders-0", 3000, None)]
    night = {**quiet(), "health": tables({"health": rows})["health"]}
    assert said_of(night).headline == "orders-0 had no leader for 10 min"
    for end in (7200, 250_000_000_000):  # an hour later; in the year 9948
        assert said_of(night, -60_000_000_000, end) == said_of(night)
