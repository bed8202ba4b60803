"""DeleteTopics (key 20), versions 1-6. KIP-516.

- By name, or from version 6 on by name or id; the answers come in random order.
- Who may delete in the cluster may delete any topic; to others, topics that they may not see are
  TOPIC_AUTHORIZATION_FAILED, be they there or not.
- `delete.topic.enable=false`: every topic is refused, before version 3 as a bad request.
"""

from __future__ import annotations

from kraftline.broker.context import Context
from kraftline.metadata.access import Operation
from kraftline.schema.api.delete_topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)
from kraftline.schema.api.error_codes import ErrorCode


async def answer(request: DeleteTopicsRequest, context: Context) -> DeleteTopicsResponse:
    broker = context.broker
    if broker.config["delete.topic.enable"] is False:
        return _refused(request, context.version)
    return await broker.controller.delete_topics(request, context.topic_access(Operation.DELETE))


def _refused(request: DeleteTopicsRequest, version: int) -> DeleteTopicsResponse:
    code = ErrorCode.INVALID_REQUEST if version < 3 else ErrorCode.TOPIC_DELETION_DISABLED
    named = (DeleteTopicState(name=name) for name in request.topic_names)
    return DeleteTopicsResponse(
        responses=tuple(
            DeletableTopicResult(name=each.name, topic_id=each.topic_id, error_code=code)
            for each in (*named, *request.topics)
        )
    )
