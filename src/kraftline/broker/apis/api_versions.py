"""ApiVersions (key 18), versions 0-4.

- What the registry answers, with the features that this node supports and the cluster finalized.
- A version that is not known is answered in version 0, with error 35 and the range of this API.
"""

from __future__ import annotations

from kraftline.broker.context import Context
from kraftline.broker.registry import announced, answered
from kraftline.schema.api.api_versions import ApiVersion, ApiVersionsRequest, ApiVersionsResponse
from kraftline.schema.api.error_codes import ErrorCode

KEY = 18


def answer(request: ApiVersionsRequest, context: Context) -> ApiVersionsResponse:
    known = answered(KEY)
    assert known is not None
    if context.version not in known:
        return ApiVersionsResponse(
            error_code=ErrorCode.UNSUPPORTED_VERSION,
            api_keys=(ApiVersion(api_key=KEY, min_version=known.first, max_version=known.last),),
        )
    return ApiVersionsResponse(
        api_keys=tuple(
            ApiVersion(api_key=key, min_version=low, max_version=high)
            for key, low, high in announced()
        )
    )
