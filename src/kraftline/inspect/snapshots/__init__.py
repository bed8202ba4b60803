"""New snapshots of a cluster's metadata: the state at an offset as it was, or as it should be.

Nothing is ever changed in place: what is written is a new file, for a node that is stopped.
"""

from __future__ import annotations

from kraftline.inspect.snapshots.editing import Edited, edit_state
from kraftline.inspect.snapshots.edits import (
    DeleteTopic,
    Edit,
    RemoveBroker,
    SetConfig,
    parse_config,
    parse_unset,
)
from kraftline.inspect.snapshots.refusal import Refused
from kraftline.inspect.snapshots.source import State, read_state
from kraftline.inspect.snapshots.versions import for_release, losses
from kraftline.inspect.snapshots.writing import Written, target_of, write_state

__all__ = [
    "DeleteTopic",
    "Edit",
    "Edited",
    "Refused",
    "RemoveBroker",
    "SetConfig",
    "State",
    "Written",
    "edit_state",
    "for_release",
    "losses",
    "parse_config",
    "parse_unset",
    "read_state",
    "target_of",
    "write_state",
]
