"""CreateTopics (key 19), versions 2-7: the controller decides."""

from __future__ import annotations

from kraftline.broker.context import Context
from kraftline.controller.topics import create_topics
from kraftline.schema.api.create_topics import CreateTopicsRequest, CreateTopicsResponse


async def answer(request: CreateTopicsRequest, context: Context) -> CreateTopicsResponse:
    return await context.broker.controller.run(lambda image, now: create_topics(image, request))
