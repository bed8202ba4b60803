"""What groups have done."""

from __future__ import annotations

import msgspec


class Counts(msgspec.Struct):
    """What has happened since the start, in all partitions."""

    commits: int = 0
    deletions: int = 0
    expirations: int = 0
    rebalances: int = 0
