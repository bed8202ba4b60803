"""What every test can use."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

from tests.effort import rounds

pytest_plugins = ["tests.oracle.plugin"]

settings.register_profile(
    "kraftline",
    max_examples=rounds(25),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
settings.load_profile("kraftline")
