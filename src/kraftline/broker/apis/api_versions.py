"""ApiVersions (key 18), versions 0-4. KIP-35, KIP-511, KIP-584.

- What the registry answers, with the features that this node supports and the cluster finalized;
  their epoch is the offset up to which the metadata is known.
- From version 3 a client says its name and version: letters and digits, with `-` and `.` between
  them. Anything else is INVALID_REQUEST, with nothing but the error.
- Features that may be off (level 0) are told from version 4: older clients take a range from 0 for
  an error.
- A version that is not known is answered in version 0, with error 35 and the range of this API.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from kraftline.broker.context import Context
from kraftline.broker.registry import MODULES, announced, answered
from kraftline.metadata.features import KRAFT_VERSION, METADATA_VERSION, supported_features
from kraftline.metadata.image import MetadataImage
from kraftline.schema.api.api_versions import (
    ApiVersion,
    ApiVersionsRequest,
    ApiVersionsResponse,
    FinalizedFeatureKey,
    SupportedFeatureKey,
)
from kraftline.schema.api.error_codes import ErrorCode

KEY: Final = 18

_software = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?").fullmatch


def answer(request: ApiVersionsRequest, context: Context) -> ApiVersionsResponse:
    return of_modules(MODULES, request, context)


def of_modules(
    modules: Mapping[int, str], request: ApiVersionsRequest, context: Context
) -> ApiVersionsResponse:
    """What a listener with these modules answers."""
    version = context.version
    known = answered(KEY)
    assert known is not None
    if version not in known:
        return ApiVersionsResponse(
            error_code=ErrorCode.UNSUPPORTED_VERSION,
            api_keys=(ApiVersion(api_key=KEY, min_version=known.first, max_version=known.last),),
        )
    if version >= 3 and not (
        _software(request.client_software_name) and _software(request.client_software_version)
    ):
        return ApiVersionsResponse(error_code=ErrorCode.INVALID_REQUEST)
    image = context.broker.cache.image
    return ApiVersionsResponse(
        api_keys=tuple(
            ApiVersion(api_key=key, min_version=low, max_version=high)
            for key, low, high in announced(modules)
        ),
        supported_features=tuple(
            SupportedFeatureKey(name=name, min_version=low, max_version=high)
            for name, (low, high) in sorted(supported_features().items())
            if low > 0 or version >= 4
        ),
        finalized_features_epoch=image.offset,
        finalized_features=tuple(
            FinalizedFeatureKey(name=name, min_version_level=level, max_version_level=level)
            for name, level in sorted(_finalized(image, context).items())
        ),
    )


def _finalized(image: MetadataImage, context: Context) -> dict[str, int]:
    levels = dict(image.features.levels)
    if image.features.metadata_version is not None:
        levels[METADATA_VERSION] = image.features.metadata_version.level
    if context.broker.controller.log.kraft_version > 0:
        levels[KRAFT_VERSION] = context.broker.controller.log.kraft_version
    return levels
