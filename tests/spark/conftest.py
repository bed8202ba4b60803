"""What only a soak has time for."""

from __future__ import annotations

from tests.effort import SOAK

# Fifty clusters, and every table built twice.
collect_ignore = [] if SOAK else ["history/test_two_builds.py", "test_fleet.py"]
