"""From a formatted directory to a log that its only voter leads."""

from __future__ import annotations

import os
from collections.abc import Sequence

import msgspec

from kraftline.raft import leadership
from kraftline.raft.claim import Claim
from kraftline.raft.control_state import ControlState
from kraftline.raft.recovery import Recovery, recover
from kraftline.raft.segment_log import Encoded, LogView, SegmentLog
from kraftline.raft.settings import LogSettings
from kraftline.raft.snapshots import Snapshots
from kraftline.records.control import build_control_batch
from kraftline.schema.control.voters_record import Endpoint
from kraftline.storage.files import sync_directory
from kraftline.storage.leader_epochs import LeaderEpochs
from kraftline.storage.names import METADATA_TOPIC


class Opened(msgspec.Struct, frozen=True, kw_only=True):
    """A log that is led: its first batch of this epoch is durable."""

    directory: str
    node_id: int
    epoch: int
    epoch_start_offset: int
    recovery: Recovery
    files: SegmentLog
    view: LogView
    snapshots: Snapshots
    epochs: LeaderEpochs
    controls: ControlState
    claim: Claim


def open_files(
    directory: str,
    node_id: int,
    settings: LogSettings,
    endpoints: Sequence[Endpoint],
    claim: Claim,
    time: int,
    *,
    is_voter: bool = True,
) -> Opened:
    """Recover the log in a log directory and begin a new epoch in it."""
    meta = leadership.check_owner(directory, node_id)
    folder = os.path.join(directory, f"{METADATA_TOPIC}-0")
    if not os.path.isdir(folder):
        os.mkdir(folder)
        sync_directory(directory)
    recovered = recover(folder)
    controls, epochs = recovered.controls, recovered.epochs
    state = leadership.check_only_voter(
        folder, node_id, meta.directory_id, controls, is_configured=is_voter
    )
    snapshots = Snapshots(folder, recovered.snapshots)
    last_epoch = epochs.latest
    if last_epoch is None:
        last_epoch = 0 if snapshots.newest is None else snapshots.newest.epoch
    epoch = leadership.next_epoch(state, last_epoch)
    leadership.write_leadership(folder, node_id, epoch, controls.kraft_version)

    files = SegmentLog(folder, recovered, settings)
    try:
        start = files.end_offset
        epochs.assign(epoch, start)
        epochs.write(folder)
        records = leadership.start_of_epoch(node_id, meta.directory_id, controls, endpoints)
        data = build_control_batch(
            records, base_offset=start, timestamp=time, partition_leader_epoch=epoch
        )
        files.write([Encoded(data, start, start + len(records), time)])
        view = files.sync()
    except BaseException:
        files.release()
        raise
    controls.add(start, records)
    return Opened(
        directory=directory,
        node_id=node_id,
        epoch=epoch,
        epoch_start_offset=start,
        recovery=recovered.report,
        files=files,
        view=view,
        snapshots=snapshots,
        epochs=epochs,
        controls=controls,
        claim=claim,
    )
