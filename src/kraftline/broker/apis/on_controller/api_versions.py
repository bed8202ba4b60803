"""ApiVersions (key 18), versions 0-4, of a controller: as a broker's, by what is answered here."""

from __future__ import annotations

from kraftline.broker.apis.api_versions import of_modules
from kraftline.broker.context import Context
from kraftline.broker.registry import controller_modules
from kraftline.schema.api.api_versions import ApiVersionsRequest, ApiVersionsResponse


def answer(request: ApiVersionsRequest, context: Context) -> ApiVersionsResponse:
    return of_modules(controller_modules(), request, context)
