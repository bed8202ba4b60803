"""What is counted, compared and ranked: brokers, changes, topics, groups, configs, gaps."""

from __future__ import annotations

import itertools

from kraftline.report.brokers import LOST, SHUT, STARTING, UP
from tests.report.nights import (
    Row,
    bad,
    broker,
    change,
    commits,
    covered,
    micro,
    quiet,
    segment,
    tables,
    trouble,
    true,
)
from tests.report.telling import found_in


def test_fenced_is_lost_unless_the_broker_left_or_is_new() -> None:
    lanes = found_in(bad()).brokers.lanes
    assert [each.state for each in lanes[3]] == [UP, LOST, STARTING, UP]
    assert SHUT in [each.state for each in lanes[2]]
    assert LOST not in [each.state for each in lanes[2]]


def test_a_lane_covers_the_window_without_holes() -> None:
    found = found_in(bad(), 300, 2430)
    for lane in found.brokers.lanes.values():
        assert lane[0].start == found.window.start
        assert lane[-1].end == found.window.end
        assert all(a.end == b.start for a, b in itertools.pairwise(lane))


def test_of_many_brokers_those_in_trouble_are_drawn() -> None:
    rows = [row for number in range(100) for row in broker(number, (0, None, "up"))]
    rows += broker(777, (0, 600, "up"), (600, None, "fenced"))
    found = found_in({**quiet(), "brokers": tables({"brokers": rows})["brokers"]}).brokers
    assert 777 in found.lanes
    assert len(found.lanes) + found.left_out == 101


def test_a_broker_that_comes_and_goes_all_day_is_drawn_with_few_bars() -> None:
    rows = broker(
        1, *((n, n + 1, "fenced" if n % 2 else "up") for n in range(3600)), (3600, None, "up")
    )
    found = found_in({**quiet(), "brokers": tables({"brokers": rows})["brokers"]}).brokers
    assert len(found.lanes[1]) < 600
    assert len(found.outages) == 1800


def test_like_changes_of_one_cause_are_one_line() -> None:
    found = found_in(bad()).changes
    assert found.total == 17
    assert found.told == 17
    assert [(line.count, line.text) for line in found.lines if line.count > 1] == [
        (6, "6 leaders moved because broker 3 was fenced: orders-0, orders-1, orders-2 and others"),
        (6, "6 partitions have a replica more in sync: orders-0, orders-1, orders-2 and others"),
    ]
    assert all("bookkeeping" not in line.text for line in found.lines)


def test_a_long_list_of_changes_keeps_what_people_did() -> None:
    rows = [
        change(n / 10, "isr.shrank", f"t-{n}", f"ISR of t-{n}", cause=f"cause {n}")
        for n in range(5000)
    ]
    rows.append(change(100, "topic.deleted", "topic old", "topic old deleted"))
    found = found_in({**quiet(), "changes": tables({"changes": rows})["changes"]}).changes
    assert found.total == 5001
    assert len(found.lines) == 1200
    assert found.told == 1200
    assert "topic old deleted" in [line.text for line in found.lines]
    times = [line.time for line in found.lines]
    assert times == sorted(times)


def test_churn_counts_every_change_of_leaders_and_replicas() -> None:
    churn = found_in(bad()).churn
    assert churn.totals == {
        "leader moved": 6,
        "leader lost": 1,
        "unclean election": 1,
        "replica fell out of sync": 0,
        "replica caught up": 6,
    }
    at = churn.starts.index(micro(600))
    assert churn.counts["leader moved"][at] == 6


def test_a_topic_counts_once_however_many_copies_there_are() -> None:
    growing = {each.topic: each for each in found_in(bad()).topics.growing}
    assert growing["orders"].bytes == 4_000_000
    assert growing["orders"].gained_bytes == 4_000_000
    # Half of the segment's time lies before the window.
    assert growing["audit"].gained_bytes == 10_000
    assert "old" not in growing


def test_topics_without_a_node_are_counted() -> None:
    rows = [{**segment("lonely", 5, 1000, 0, 60), "node": None}]
    night = {**quiet(), "topic_sizes": tables({"topic_sizes": rows})["topic_sizes"]}
    assert [each.topic for each in found_in(night).topics.growing] == ["lonely"]


def test_lag_is_summed_over_partitions_and_ends_where_segments_end() -> None:
    lagging = {each.group: each for each in found_in(bad()).groups.lagging}
    assert list(lagging) == ["analytics", "billing"]
    assert lagging["analytics"].behind == 8100
    assert lagging["analytics"].curve[-1] == (micro(1200), 2000)
    assert lagging["billing"].highest == 500


def test_lag_without_segments_is_what_commits_tell() -> None:
    rows: dict[str, list[Row]] = {
        "group_offsets": commits("g", "t", (60, 1, 5), (90, 2, 7)),
    }
    night = {**quiet(), "group_offsets": tables(rows)["group_offsets"]}
    (lag,) = found_in(night).groups.lagging
    assert lag.behind is None
    assert lag.highest == 7


def test_configs_at_their_default_are_left_out() -> None:
    found = found_in(bad()).configs.settings
    assert [(each.name, each.value, each.default, each.owners) for each in found] == [
        ("retention.ms", "1d", "7d", ["topic orders"]),
        ("min.insync.replicas", "2", "1", ["topic orders"]),
    ]
    assert found[0].since == micro(3000)
    assert found[1].since is None


def test_a_secret_config_is_never_shown() -> None:
    row = true(60, None, resource_type="broker", resource="1", name="ssl.keystore.password",
               value=None, is_secret=True)  # fmt: skip
    night = {**quiet(), "configs": tables({"configs": [row]})["configs"]}
    assert [each.value for each in found_in(night).configs.settings] == ["[hidden]"]


def test_one_value_on_many_topics_is_one_row() -> None:
    rows = [
        true(
            60, None, resource_type="topic", resource=f"t{n:03}", name="retention.ms", value="1000"
        )
        for n in range(300)
    ]
    (setting,) = found_in(
        {**quiet(), "configs": tables({"configs": rows})["configs"]}
    ).configs.settings
    assert setting.count == 300
    assert setting.owners == [f"topic t{n:03}" for n in range(5)]


def test_what_is_not_covered_is_told() -> None:
    rows = [covered(0, 100), covered(100, 200, "gap"), {**covered(200, 3600), "committed_to": 3000}]
    found = found_in({**quiet(), "coverage": tables({"coverage": rows})["coverage"]}).gaps
    assert found.gaps == 1
    assert found.uncommitted_from == 3000
    assert found.last_offset == 3599


def test_partitions_that_were_worst_off_are_drawn_first() -> None:
    rows = [trouble("under-replicated", f"t-{n}", 0, 3000) for n in range(50)]
    rows.append(trouble("offline", "down-0", 0, 300))
    found = found_in({**quiet(), "health": tables({"health": rows})["health"]}).troubles
    assert found.lanes[0].name == "down-0"
    assert len(found.lanes) == 20
    assert found.lanes_left_out == 31
