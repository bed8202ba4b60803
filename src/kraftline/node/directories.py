"""The log directories that a node starts with: checked, given ids, and held by their locks."""

from __future__ import annotations

import os
from contextlib import ExitStack

import msgspec

from kraftline.config.node_settings import NodeSettings
from kraftline.errors import KraftlineError
from kraftline.metadata.directories import WrongDirectory, check_directories
from kraftline.metadata.random_ids import random_uuid
from kraftline.schema.uuids import Uuid
from kraftline.storage import meta_properties
from kraftline.storage.checkpoints import RECOVERY_POINTS
from kraftline.storage.lock import DirectoryLock
from kraftline.storage.meta_properties import write_meta_properties


class Directories(msgspec.Struct, frozen=True, kw_only=True):
    """`logs` are the directories of partitions that can be used, with their ids; `metadata` is
    where the metadata log is; `unreadable` those that cannot be used, with why."""

    cluster_id: str
    metadata: str
    logs: dict[str, Uuid]
    locks: dict[str, DirectoryLock]
    unreadable: dict[str, str]


def take_directories(settings: NodeSettings, held: ExitStack) -> Directories:
    """Nobody else can have them until `held` is closed. WrongDirectory or NotKafka says why not."""
    log_dirs = tuple(dict.fromkeys(map(os.path.abspath, settings.log_dirs)))
    metadata = os.path.abspath(settings.metadata_log_dir)
    found = check_directories(log_dirs, metadata, node_id=settings.node_id)
    cluster_id = found.formatted[metadata].cluster_id
    assert cluster_id is not None  # it was looked for
    unreadable = {**found.unreadable, **found.broken}
    locks: dict[str, DirectoryLock] = {}
    for path in found.formatted:
        try:
            locks[path] = DirectoryLock(path)
        except KraftlineError as problem:
            # Somebody else has it: that is no failed disk.
            if path == metadata or isinstance(problem.__cause__, BlockingIOError):
                raise
            if _is_new_and_read_only(path):
                raise WrongDirectory(
                    f"{path} cannot be written to, and no node has used it yet: {problem}. Make it "
                    "writable, or take it out of log.dirs"
                ) from None
            unreadable[path] = str(problem)
        else:
            held.callback(locks[path].release)
    usable = [path for path in log_dirs if path in locks]
    if not usable:
        raise WrongDirectory(
            "Shutdown broker because none of the specified log dirs from "
            f"{', '.join(log_dirs)} can be created or validated"
        )
    identities: dict[str, Uuid] = {}
    for path in locks:
        meta = found.formatted[path]
        if meta.directory_id is None:  # of a release before 3.7
            meta = msgspec.structs.replace(meta, directory_id=random_uuid())
            write_meta_properties(os.path.join(path, meta_properties.NAME), meta)
        assert meta.directory_id is not None
        identities[path] = meta.directory_id
    return Directories(
        cluster_id=cluster_id,
        metadata=metadata,
        logs={path: identities[path] for path in usable},
        locks=locks,
        unreadable=unreadable,
    )


def _is_new_and_read_only(path: str) -> bool:
    """As Kafka tells a mistake from a disk that failed: it looks whether a checkpoint, which every
    directory in use has, is there or can be made."""
    used = os.path.exists(os.path.join(path, RECOVERY_POINTS))
    return not used and not os.access(path, os.W_OK, effective_ids=True)
