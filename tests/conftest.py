"""What every test can use."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

pytest_plugins = ["tests.oracle.plugin"]

# `make soak` runs the full counts; `make test` a few rounds of each.
SOAK = bool(os.environ.get("KRAFTLINE_SOAK"))
_checks = [HealthCheck.too_slow, HealthCheck.function_scoped_fixture]
settings.register_profile("few", max_examples=25, deadline=None, suppress_health_check=_checks)
settings.register_profile("soak", max_examples=2000, deadline=None, suppress_health_check=_checks)
settings.load_profile("soak" if SOAK else "few")
