"""What is configured for consumer groups, and what may not be."""

from __future__ import annotations

import pytest

from kraftline.broker.coordinators.groups.consumer.settings import Migration, Settings
from kraftline.config.values import BadConfig
from kraftline.metadata.image import EMPTY, MetadataDelta, MetadataImage
from kraftline.metadata.image.configs import GROUP
from kraftline.schema.metadata.config_record import ConfigRecord
from tests.groups.states import config_of


def image_with(**settings: object) -> MetadataImage:
    delta = MetadataDelta(EMPTY)
    for name, value in settings.items():
        delta.replay(
            ConfigRecord(
                resource_type=GROUP,
                resource_name="g",
                name=name.replace("_", "."),
                value=str(value),
            )
        )
    return delta.apply(EMPTY.provenance)


def test_a_group_has_its_own_times_within_the_brokers_bounds() -> None:
    settings = Settings(config_of(group_consumer_heartbeat_interval_ms=6000))
    assert settings.heartbeat_ms("g", EMPTY) == 6000
    assert settings.session_ms("g", EMPTY) == 45_000
    image = image_with(consumer_heartbeat_interval_ms=7000, consumer_session_timeout_ms=50_000)
    assert settings.heartbeat_ms("g", image) == 7000
    assert settings.heartbeat_ms("other", image) == 6000
    assert settings.session_ms("g", image) == 50_000
    image = image_with(consumer_heartbeat_interval_ms=1, consumer_session_timeout_ms=999_999)
    assert settings.heartbeat_ms("g", image) == 5000
    assert settings.session_ms("g", image) == 60_000


def test_the_time_between_targets_changes_while_the_broker_runs() -> None:
    settings = Settings(config_of())
    assert settings.assignment_ms("g", EMPTY) == 1000
    settings.follow(config_of(group_consumer_assignment_interval_ms=99_000))
    assert settings.assignment_ms("g", EMPTY) == 15_000
    assert settings.assignment_ms("g", image_with(consumer_assignment_interval_ms=7)) == 7


def test_the_migration_policy_is_written_in_any_case() -> None:
    assert Settings(config_of()).migration is Migration.BIDIRECTIONAL
    settings = Settings(config_of(group_consumer_migration_policy="UpGrade"))
    assert settings.migration.is_upgrade
    assert not settings.migration.is_downgrade


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        (
            "group_consumer_session_timeout_ms",
            1000,
            "group.consumer.session.timeout.ms must be greater than or equal to "
            "group.consumer.min.session.timeout.ms",
        ),
        (
            "group_consumer_heartbeat_interval_ms",
            50_000,
            "group.consumer.heartbeat.interval.ms must be less than or equal to "
            "group.consumer.max.heartbeat.interval.ms",
        ),
        (
            "group_consumer_max_session_timeout_ms",
            1,
            "group.consumer.max.session.timeout.ms must be greater than or equal to "
            "group.consumer.min.session.timeout.ms",
        ),
        ("group_consumer_assignors", "sticky", "sticky is none of the assignors"),
    ],
)
def test_what_makes_no_sense_is_refused(name: str, value: object, said: str) -> None:
    with pytest.raises(BadConfig, match=said):
        Settings(config_of(**{name: value}))
