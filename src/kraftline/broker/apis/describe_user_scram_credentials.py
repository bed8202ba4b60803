"""DescribeUserScramCredentials (key 50), version 0. KIP-554.

- The mechanisms and iterations of users, never a key; without a list of users, or with an empty
  one, of all.
- One that is not there is RESOURCE_NOT_FOUND, one that is named twice DUPLICATE_RESOURCE.
"""

from __future__ import annotations

from collections import Counter

from kraftline.broker.context import Context
from kraftline.controller.java_order import in_string_order
from kraftline.metadata.access import Operation
from kraftline.metadata.image.scram import ScramImage
from kraftline.schema.api.describe_user_scram_credentials import (
    CredentialInfo,
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    DescribeUserScramCredentialsResult,
)
from kraftline.schema.api.error_codes import ErrorCode


def answer(
    request: DescribeUserScramCredentialsRequest, context: Context
) -> DescribeUserScramCredentialsResponse:
    context.require(Operation.DESCRIBE)
    scram = context.broker.cache.image.scram
    if request.users:
        named = Counter(each.name for each in request.users)
    else:
        named = Counter({name for _, name in sorted(scram.credentials)})
    return DescribeUserScramCredentialsResponse(
        results=tuple(_of_user(name, named[name], scram) for name in in_string_order(named)),
    )


def failed(
    request: DescribeUserScramCredentialsRequest, error: ErrorCode, context: Context
) -> DescribeUserScramCredentialsResponse:
    return DescribeUserScramCredentialsResponse(
        error_code=error,
        error_message=None,
        # As in Kafka, one for each user, without its name.
        results=tuple(
            DescribeUserScramCredentialsResult(error_code=error, error_message=None)
            for _ in request.users or ()
        ),
    )


def _of_user(name: str, times: int, scram: ScramImage) -> DescribeUserScramCredentialsResult:
    if times > 1:
        return DescribeUserScramCredentialsResult(
            user=name,
            error_code=ErrorCode.DUPLICATE_RESOURCE,
            error_message="Cannot describe SCRAM credentials for the same user twice in a single "
            f"request: {name}",
        )
    found = [
        CredentialInfo(mechanism=mechanism, iterations=credential.iterations)
        for mechanism in (1, 2)
        if (credential := scram.credentials.get((mechanism, name))) is not None
    ]
    if not found:
        return DescribeUserScramCredentialsResult(
            user=name,
            error_code=ErrorCode.RESOURCE_NOT_FOUND,
            error_message=f"Attempt to describe a user credential that does not exist: {name}",
        )
    return DescribeUserScramCredentialsResult(user=name, credential_infos=tuple(found))
