"""UpdateFeatures (key 57), versions 0-2. KIP-584, KIP-778, KIP-1022.

- All features change or none; the answer names the first that cannot.
- metadata.version goes back only where no record would change by it. kraft.version stays as the
  quorum was made.
"""

from __future__ import annotations

from kraftline.broker.context import Context
from kraftline.metadata.access import Operation
from kraftline.schema.api.update_features import UpdateFeaturesRequest, UpdateFeaturesResponse


async def answer(request: UpdateFeaturesRequest, context: Context) -> UpdateFeaturesResponse:
    context.require(Operation.ALTER)
    return await context.broker.controller.admin.update_features(request)
