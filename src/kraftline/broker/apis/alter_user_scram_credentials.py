"""AlterUserScramCredentials (key 51), version 0. KIP-554.

- The controller decides, user by user. The client has salted the password already, so nothing
  slow is left to do.
- Who may not alter the cluster is told so for each user.
"""

from __future__ import annotations

from kraftline.broker.context import Context
from kraftline.metadata.access import Operation
from kraftline.schema.api.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    AlterUserScramCredentialsResult,
)
from kraftline.schema.api.error_codes import ErrorCode


async def answer(
    request: AlterUserScramCredentialsRequest, context: Context
) -> AlterUserScramCredentialsResponse:
    context.require(Operation.ALTER)
    return await context.broker.controller.alter_scram_credentials(request)


def failed(
    request: AlterUserScramCredentialsRequest, error: ErrorCode, context: Context
) -> AlterUserScramCredentialsResponse:
    named = sorted(
        {each.name for each in request.deletions} | {each.name for each in request.upsertions}
    )
    return AlterUserScramCredentialsResponse(
        results=tuple(
            AlterUserScramCredentialsResult(user=name, error_code=error, error_message=None)
            for name in named
        )
    )
