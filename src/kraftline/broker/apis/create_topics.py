"""CreateTopics (key 19), versions 2-7. KIP-464, KIP-525.

- The controller decides, topic by topic; what was made is committed when the answer goes out.
- From version 5 on the answer has every config of a new topic, and where its value is from.
- Who may create in the cluster may create any topic, others those that an ACL allows: all else is
  TOPIC_AUTHORIZATION_FAILED. Configs are told only to who may describe them.
- Unlike with ZooKeeper of old, `timeout_ms` never cuts an answer short: nothing is waited for.
"""

from __future__ import annotations

from kraftline.broker.context import Context
from kraftline.metadata.access import Operation
from kraftline.schema.api.create_topics import CreateTopicsRequest, CreateTopicsResponse


async def answer(request: CreateTopicsRequest, context: Context) -> CreateTopicsResponse:
    access = context.topic_access(Operation.CREATE)
    return await context.broker.controller.create_topics(request, access)
