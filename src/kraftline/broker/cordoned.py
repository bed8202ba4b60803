"""Log directories that shall get no new replicas: `cordoned.log.dirs`."""

from __future__ import annotations

import os
from collections.abc import Mapping

from kraftline.config.effective import Config
from kraftline.schema.uuids import Uuid


def cordoned_of(config: Config, directories: Mapping[str, Uuid]) -> tuple[Uuid, ...]:
    """Of these, ids by paths: those that are named, or * for all."""
    named = config.texts("cordoned.log.dirs")
    paths = {os.path.abspath(each) for each in named}
    return tuple(
        identity for path, identity in directories.items() if named == ["*"] or path in paths
    )
