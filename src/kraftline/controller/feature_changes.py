"""Features are raised, lowered, turned on and off (UpdateFeatures).

- All changes of a request are made or none; the first that is wrong is told.
- This controller, and every broker and controller that is registered, must know the new level.
- metadata.version goes back only where no record would change by it.
- Turning eligible leader replicas on makes the cluster's minimum of in-sync replicas part of the
  metadata, and takes away those of single brokers: what is eligible depends on it.
- kraft.version is the quorum's: it stays as it is.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

import msgspec

from kraftline.controller.decision import Decision
from kraftline.controller.java_order import in_string_order
from kraftline.controller.refusal import Refusal
from kraftline.controller.topic_configs import MIN_ISR
from kraftline.metadata.features import (
    ELIGIBLE_LEADER_REPLICAS_VERSION,
    FEATURES,
    KRAFT_VERSION,
    METADATA_VERSION,
    from_level,
    metadata_changed,
    supported_features,
)
from kraftline.metadata.image import MetadataImage
from kraftline.metadata.image.configs import BROKER
from kraftline.metadata.registrations import SupportedFeature
from kraftline.metadata.write_options import Versioned
from kraftline.schema.api.error_codes import ErrorCode
from kraftline.schema.api.update_features import (
    FeatureUpdateKey,
    UpdatableFeatureResult,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)
from kraftline.schema.metadata.config_record import ConfigRecord
from kraftline.schema.metadata.feature_level_record import FeatureLevelRecord

UPGRADE, SAFE_DOWNGRADE, UNSAFE_DOWNGRADE = 1, 2, 3
_NOT_THERE: Final = (0, 0)


class FeatureRules(msgspec.Struct, frozen=True):
    """Of the node that decides: its id, the level of kraft.version that its quorum has, and its
    minimum of in-sync replicas."""

    node_id: int
    kraft_version: int
    min_isr: int
    unstable: bool = False


def update_features(
    image: MetadataImage, request: UpdateFeaturesRequest, rules: FeatureRules
) -> Decision[UpdateFeaturesResponse]:
    updates = {each.feature: each for each in request.feature_updates}
    proposed = {**_finalized(image), **{n: u.max_version_level for n, u in updates.items()}}
    records: list[Versioned] = []
    try:
        for name in in_string_order(updates):
            records += _updated(image, updates[name], proposed, rules)
    except Refusal as refusal:
        return Decision(
            UpdateFeaturesResponse(
                error_code=refusal.code,
                error_message="The update failed for all features since the following feature had "
                f"an error: {refusal.message}",
            )
        )
    response = UpdateFeaturesResponse(
        error_message=None,
        results=tuple(
            UpdatableFeatureResult(feature=each.feature, error_message="NONE")
            for each in request.feature_updates
        ),
    )
    return Decision(response, () if request.validate_only else records)


def _finalized(image: MetadataImage) -> dict[str, int]:
    version = image.features.metadata_version
    assert version is not None
    return {**image.features.levels, METADATA_VERSION: version.level}


def _updated(
    image: MetadataImage,
    update: FeatureUpdateKey,
    proposed: Mapping[str, int],
    rules: FeatureRules,
) -> list[Versioned]:
    name, level, kind = update.feature, update.max_version_level, update.upgrade_type
    if kind not in (UPGRADE, SAFE_DOWNGRADE, UNSAFE_DOWNGRADE):
        raise _invalid(name, level, "The controller does not support the given upgrade type.")
    if level < 0:
        raise _invalid(name, level, "A feature version cannot be less than 0.")
    _check_supported(image, name, level, rules)
    now = rules.kraft_version if name == KRAFT_VERSION else _finalized(image).get(name, 0)
    if level < now and kind == UPGRADE:
        raise _invalid(
            name,
            level,
            "Can't downgrade the version of this feature without setting the upgrade type to "
            "either safe or unsafe downgrade.",
        )
    if level > now and kind != UPGRADE:
        raise _invalid(name, level, "Can't downgrade to a newer version.")
    if name == METADATA_VERSION:
        _check_downgrade(image, level, is_unsafe=kind == UNSAFE_DOWNGRADE)
    elif name == KRAFT_VERSION:
        _check_kraft(level, now)
        return []
    else:
        _check_needs(name, level, proposed)
    record: Versioned = (FeatureLevelRecord(name=name, feature_level=level), 0)
    if name == ELIGIBLE_LEADER_REPLICAS_VERSION and level > 0:
        return [*_least_in_sync(image, rules), record]
    return [record]


def _check_supported(image: MetadataImage, name: str, level: int, rules: FeatureRules) -> None:
    for who, (least, most) in _supporting(image, name, rules):
        if least <= level <= most:
            continue
        if (least, most) == _NOT_THERE:
            raise _invalid(name, level, f"{who} does not support this feature.")
        raise _invalid(name, level, f"{who} only supports versions {least}-{most}")


def _supporting(
    image: MetadataImage, name: str, rules: FeatureRules
) -> Iterator[tuple[str, tuple[int, int]]]:
    own = supported_features(unstable=rules.unstable)
    yield f"Local controller {rules.node_id}", own.get(name, _NOT_THERE)
    for _, broker in sorted(image.cluster.brokers.items()):
        yield f"Broker {broker.id}", _range(broker.features, name)
    version = image.features.metadata_version
    if version is not None and version.controller_registration_supported:
        for number, controller in sorted(image.cluster.controllers.items()):
            if number != rules.node_id:
                yield f"Controller {number}", _range(controller.features, name)


def _range(features: tuple[SupportedFeature, ...], name: str) -> tuple[int, int]:
    for each in features:
        if each.name == name:
            return each.min_version, each.max_version
    return _NOT_THERE


def _check_downgrade(image: MetadataImage, level: int, *, is_unsafe: bool) -> None:
    now = image.features.metadata_version
    assert now is not None
    if level >= now.level or not metadata_changed(now, from_level(level)):
        return
    reason = (
        "Unsafe metadata downgrade is not supported in this version."
        if is_unsafe
        else "Refusing to perform the requested downgrade because it might delete metadata "
        "information."
    )
    raise Refusal(
        ErrorCode.INVALID_UPDATE_VERSION,
        f"Unsupported metadata.version downgrade from {now.level} to {level}. {reason}",
    )


def _check_kraft(level: int, now: int) -> None:
    if level < now:
        raise _invalid(KRAFT_VERSION, level, "Can't downgrade the version of this feature.")
    if level > now:
        raise _invalid(
            KRAFT_VERSION, level, "The quorum of this node cannot be raised while it runs."
        )


def _check_needs(name: str, level: int, proposed: Mapping[str, int]) -> None:
    if name not in FEATURES:
        raise _invalid(name, level, f"Feature {name} not found.")
    needs = next(each.needs for each in FEATURES[name].levels if each.level == level)
    for need, least in sorted(needs.items()):
        if proposed.get(need, 0) < least:
            raise _invalid(
                name,
                level,
                f"{name} could not be set to {level} because it depends on {need} level {least}",
            )


def _least_in_sync(image: MetadataImage, rules: FeatureRules) -> Iterator[Versioned]:
    if MIN_ISR not in image.configs.of(BROKER, ""):
        yield _config("", str(rules.min_isr)), 0
    for kind, name in sorted(image.configs.resources):
        if kind == BROKER and name and MIN_ISR in image.configs.of(BROKER, name):
            yield _config(name, None), 0


def _config(broker: str, value: str | None) -> ConfigRecord:
    return ConfigRecord(resource_type=BROKER, resource_name=broker, name=MIN_ISR, value=value)


def _invalid(name: str, level: int, reason: str) -> Refusal:
    return Refusal(
        ErrorCode.INVALID_UPDATE_VERSION,
        f"Invalid update version {level} for feature {name}. {reason}",
    )
