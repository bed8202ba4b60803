"""A directory that was only formatted: what the first start writes is what Kafka's writes."""

from __future__ import annotations

from pathlib import Path

import pytest

from kraftline.raft import EmbeddedLog, LogRefused
from kraftline.records.control import ControlType
from kraftline.storage.checkpoints import read_leader_epochs
from kraftline.storage.quorum_state import read_quorum_state
from tests.raft.logs import (
    NO_OP,
    NODE,
    QUIET,
    Keeper,
    assert_healthy,
    controls,
    formatted,
    metadata_log,
    names,
    opened,
    run,
    values,
)

LEADER, VERSION, VOTERS = (
    ControlType.LEADER_CHANGE,
    ControlType.KRAFT_VERSION,
    ControlType.KRAFT_VOTERS,
)


async def start_and_write(data: Path, count: int = 1) -> None:
    async with opened(data) as log:
        for _ in range(count):
            await log.write([NO_OP])


def test_static_quorum_begins_with_a_leader_change(tmp_path: Path) -> None:
    data = formatted(tmp_path)
    run(start_and_write(data))
    assert controls(data) == [(0, 1, LEADER)]
    assert (metadata_log(data) / "quorum-state").read_text() == (
        '{"clusterId":"","leaderId":1,"leaderEpoch":1,"votedId":-1,"appliedOffset":0,'
        '"currentVoters":[{"voterId":1}],"data_version":0}'
    )
    assert (metadata_log(data) / "leader-epoch-checkpoint").read_text() == "0\n1\n1 0\n"
    assert (metadata_log(data) / "partition.metadata").read_text() == (
        "version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAQ"
    )
    assert_healthy(data)


def test_dynamic_quorum_begins_with_version_and_voters(tmp_path: Path) -> None:
    data = formatted(tmp_path, dynamic=True)
    run(start_and_write(data))
    assert controls(data) == [(0, 1, LEADER), (1, 1, VERSION), (2, 1, VOTERS)]
    assert (metadata_log(data) / "quorum-state").read_text() == (
        '{"leaderId":1,"leaderEpoch":1,"votedId":-1,"votedDirectoryId":"AAAAAAAAAAAAAAAAAAAAAA",'
        '"data_version":1}'
    )
    # Once the log has the voters, a start does not write them again.
    run(start_and_write(data))
    assert controls(data)[3:] == [(4, 2, LEADER)]
    assert_healthy(data)


def test_changed_endpoints_are_written_to_the_voters(tmp_path: Path) -> None:
    data = formatted(tmp_path, dynamic=True)
    run(start_and_write(data))

    async def move() -> None:
        from kraftline.schema.control.voters_record import Endpoint

        moved = Endpoint(name="CONTROLLER", host="127.0.0.1", port=19093)
        for _ in range(2):
            log = await EmbeddedLog.open(data, node_id=NODE, settings=QUIET, endpoints=[moved])
            async with log:
                assert log.voters is not None
                assert log.voters.voters[0].endpoints == (moved,)

    run(move())
    types = [kind for _, _, kind in controls(data)]
    assert types == [LEADER, VERSION, VOTERS, LEADER, VERSION, VOTERS, LEADER]


def test_every_start_is_a_new_epoch(tmp_path: Path) -> None:
    data = formatted(tmp_path)
    for _ in range(3):
        run(start_and_write(data, 2))
    assert controls(data) == [(0, 1, LEADER), (3, 2, LEADER), (6, 3, LEADER)]
    assert read_quorum_state(metadata_log(data) / "quorum-state").leader_epoch == 3
    epochs = read_leader_epochs(metadata_log(data) / "leader-epoch-checkpoint")
    assert [(e.epoch, e.start_offset) for e in epochs] == [(1, 0), (2, 3), (3, 6)]
    assert values(data) == [NO_OP] * 6
    assert names(data) == [
        "00000000000000000000.index",
        "00000000000000000000.log",
        "00000000000000000000.timeindex",
        "00000000000000000006.snapshot",
        "00000000000000000009.snapshot",
        "leader-epoch-checkpoint",
        "partition.metadata",
        "quorum-state",
    ]
    assert_healthy(data)


def test_listener_learns_of_the_leader_after_its_records(tmp_path: Path) -> None:
    data = formatted(tmp_path)
    run(start_and_write(data, 3))

    async def listen() -> Keeper:
        keeper = Keeper()
        async with opened(data) as log:
            await log.register(keeper).caught_up()
        return keeper

    keeper = run(listen())
    assert keeper.told == ["commit", "leader"]
    assert keeper.leader == (NODE, 2)
    assert keeper.values == [NO_OP] * 3


def test_directory_of_another_node_is_refused(tmp_path: Path) -> None:
    data = formatted(tmp_path, node_id=7)
    with pytest.raises(LogRefused, match=r"meta\.properties: node\.id=7, but this is node 1"):
        run(start_and_write(data))


def test_unformatted_directory_is_refused(tmp_path: Path) -> None:
    with pytest.raises(LogRefused, match="kraftline format"):
        run(start_and_write(tmp_path))


def test_quorum_of_several_voters_is_refused(tmp_path: Path) -> None:
    data = formatted(tmp_path)
    run(start_and_write(data))
    state = metadata_log(data) / "quorum-state"
    state.write_text(state.read_text().replace('{"voterId":1}', '{"voterId":1},{"voterId":2}'))
    with pytest.raises(LogRefused, match="the voters 1, 2"):
        run(start_and_write(data))
