"""Features: the table beside Kafka's enums, and what may be set with what."""

from __future__ import annotations

from typing import Any, cast

import msgspec
import pytest

from kraftline.metadata import feature_table, features
from kraftline.metadata.features import (
    KRAFT_VERSIONS,
    LATEST_PRODUCTION,
    LATEST_TESTING,
    METADATA_VERSION,
    MINIMUM,
    VERSIONS,
    MetadataVersion,
    UnsupportedFeature,
    check_features,
    feature_defaults,
    from_level,
    from_release,
    metadata_changed,
    supported_features,
)
from tests.oracle.storage import feature_table as ask_kafka


def test_levels_go_from_3_3_to_one_unstable_version() -> None:
    assert (MINIMUM.level, MINIMUM.name) == (7, "3.3-IV3")
    assert (LATEST_PRODUCTION.level, LATEST_PRODUCTION.name) == (30, "4.3-IV0")
    assert (LATEST_TESTING.level, LATEST_TESTING.production) == (31, False)
    assert [version.level for version in VERSIONS] == list(range(7, 32))


@pytest.mark.parametrize(
    ("text", "level"),
    [("3.3", 7), ("3.3-IV3", 7), ("3.5", 11), ("3.9", 21), ("3.9.2", 21), ("4.0-IV1", 23),
     ("4.0", 25), ("4.3", 30), ("4.3.1", 30)],
)  # fmt: skip
def test_release_stands_for_its_newest_version(text: str, level: int) -> None:
    assert from_release(text).level == level


def test_unknown_release_is_answered_with_the_list_of_known_ones() -> None:
    with pytest.raises(
        UnsupportedFeature, match=r"'3\.2'.* are: 3\.3-IV3, .*, 4\.3-IV0; a release"
    ):
        from_release("3.2")


def test_unstable_version_needs_the_switch() -> None:
    with pytest.raises(UnsupportedFeature, match=r"Unknown metadata.version '4\.4-IV0'"):
        from_release("4.4-IV0")
    assert from_release("4.4-IV0", unstable=True) is LATEST_TESTING
    with pytest.raises(UnsupportedFeature, match="not yet stable"):
        check_features({METADATA_VERSION: 31})
    check_features({METADATA_VERSION: 31}, unstable=True)


def test_unknown_level_says_what_to_do() -> None:
    with pytest.raises(
        UnsupportedFeature, match=r"from 7 to 31\..*use a newer Kraftline, or lower"
    ):
        from_level(40)
    with pytest.raises(UnsupportedFeature, match=r"from 7 to 31\..*Kafka up to 3\.9.*raise"):
        from_level(3)


def test_versions_compare_by_level() -> None:
    assert from_level(7) < from_level(8) <= from_level(8) < from_level(20)
    assert max(VERSIONS) is LATEST_TESTING
    assert from_level(9) >= from_level(9) > from_level(8)


# From the notes on record versions of Kafka's source, not from its enums.
@pytest.mark.parametrize(
    ("level", "register_broker", "partition", "register_controller"),
    [(7, 1, 0, None), (8, 2, 0, None), (15, 2, 0, 0), (17, 3, 1, 0), (23, 3, 2, 0), (30, 4, 2, 0)],
)
def test_level_decides_which_record_versions_are_written(
    level: int, register_broker: int, partition: int, register_controller: int | None
) -> None:
    version = from_level(level)
    assert version.register_broker_record_version == register_broker
    assert version.partition_record_version == partition
    assert version.partition_change_record_version == partition
    assert version.register_controller_record_version == register_controller


@pytest.mark.parametrize(
    ("gate", "level"),
    [("migration_supported", 8), ("scram_supported", 11), ("metadata_transaction_supported", 13),
     ("delegation_token_supported", 14), ("controller_registration_supported", 15),
     ("directory_assignment_supported", 17), ("elr_supported", 23),
     ("cordoned_log_dirs_supported", 30)],
)  # fmt: skip
def test_gate_opens_at_its_level(gate: str, level: int) -> None:
    assert not getattr(from_level(level - 1), gate)
    assert all(getattr(version, gate) for version in VERSIONS if version.level >= level)


def test_newer_releases_turn_on_more_features() -> None:
    assert set(feature_defaults(from_release("3.8")).values()) == {0}
    assert feature_defaults(from_release("4.0")) == {
        "eligible.leader.replicas.version": 0,
        "group.version": 1,
        "kraft.version": 1,
        "share.version": 0,
        "streams.version": 0,
        "transaction.version": 2,
    }
    assert 0 not in feature_defaults(LATEST_PRODUCTION).values()


def test_feature_without_what_it_needs_is_refused() -> None:
    check_features({METADATA_VERSION: 23, "eligible.leader.replicas.version": 1})
    with pytest.raises(UnsupportedFeature, match=r"depends on metadata.version level 23$"):
        check_features({METADATA_VERSION: 22, "eligible.leader.replicas.version": 1})
    with pytest.raises(UnsupportedFeature, match=r"depends on metadata.version=7 \(3.3-IV3\)"):
        check_features({"group.version": 1})


def test_unknown_feature_or_level_is_refused() -> None:
    with pytest.raises(UnsupportedFeature, match=r"Unsupported feature: foo\. Supported .*group"):
        check_features({METADATA_VERSION: 30, "foo": 1})
    with pytest.raises(UnsupportedFeature, match=r"No feature:group.version with feature level 2"):
        check_features({METADATA_VERSION: 30, "group.version": 2})


def test_defaults_of_every_version_are_a_valid_set() -> None:
    for version in VERSIONS:
        levels = feature_defaults(version) | {METADATA_VERSION: version.level}
        check_features(levels, unstable=True)


def test_downgrade_loses_something_only_where_records_changed() -> None:
    assert not metadata_changed(from_level(24), from_level(29))
    assert metadata_changed(from_level(29), from_level(30))
    assert metadata_changed(from_level(30), from_level(29))
    assert not metadata_changed(from_level(30), from_level(30))
    assert not metadata_changed(from_level(23), from_level(25))
    assert metadata_changed(from_level(22), from_level(25))


def test_node_announces_stable_levels_unless_told_otherwise() -> None:
    assert supported_features()[METADATA_VERSION] == (7, 30)
    assert supported_features(unstable=True)[METADATA_VERSION] == (7, 31)
    assert supported_features()["transaction.version"] == (0, 2)


def test_voters_are_in_the_log_from_kraft_version_1() -> None:
    static, dynamic = KRAFT_VERSIONS
    assert (static.reconfig_supported, static.quorum_state_version) == (False, 0)
    assert (dynamic.reconfig_supported, dynamic.quorum_state_version) == (True, 1)
    assert (static.voters_record_version, dynamic.voters_record_version) == (None, 0)


def test_every_gate_of_the_table_has_a_field() -> None:
    named = {field.name for field in msgspec.structs.fields(MetadataVersion)}
    assert named - set(feature_table.GATES) == {"level", "name", "release", "did_metadata_change"}


@pytest.mark.oracle
def test_values_are_those_of_kafkas_enums() -> None:
    kafka = cast("dict[str, Any]", ask_kafka())
    assert kafka["minimum"] == MINIMUM.level
    assert kafka["latestProduction"] == LATEST_PRODUCTION.level
    for row, version in zip(kafka["versions"], VERSIONS, strict=True):
        assert (row["level"], row["name"], row["release"]) == (
            version.level,
            version.name,
            version.release,
        )
        assert row["defaults"] == feature_defaults(version)
        ours = {plain(name): value for name, value in msgspec.structs.asdict(version).items()}
        for gate, value in row["gates"].items():
            assert ours[plain(gate.removeprefix("is"))] == value, (gate, version.name)
    for row in kafka["features"]:
        feature = features.FEATURES[row["name"]]
        assert row["latestProduction"] == feature.latest_production
        for level, mine in zip(row["levels"], feature.levels, strict=True):
            assert (level["level"], level["bootstrap"]) == (mine.level, mine.default_from)
            assert level["needs"] == mine.needs


def plain(name: str) -> str:
    return name.replace("_", "").lower()
