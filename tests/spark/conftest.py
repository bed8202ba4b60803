"""What only a soak has time for."""

from __future__ import annotations

from tests.effort import SOAK

# A cluster of processes, fifty clusters, and every offset of many logs.
collect_ignore = []
