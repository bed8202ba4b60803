"""Passwords of users are set and removed (AlterUserScramCredentials).

- Each user of a request stands for itself; one that is named twice changes nothing.
- What is kept are keys made of the salted password that the client sends.
"""

from __future__ import annotations

from kraftline.controller.decision import Decision
from kraftline.controller.java_order import in_string_order
from kraftline.controller.refusal import Refusal
from kraftline.metadata.add_scram import (
    MAX_ITERATIONS,
    MECHANISMS,
    MIN_ITERATIONS,
    Mechanism,
    credential,
)
from kraftline.metadata.image import MetadataImage
from kraftline.metadata.write_options import Versioned
from kraftline.schema.api.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    AlterUserScramCredentialsResult,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from kraftline.schema.api.error_codes import ErrorCode
from kraftline.schema.metadata.remove_user_scram_credential_record import (
    RemoveUserScramCredentialRecord,
)

_BY_TYPE = {each.type: each for each in MECHANISMS.values()}
_TWICE = Refusal(
    ErrorCode.DUPLICATE_RESOURCE, "A user credential cannot be altered twice in the same request"
)


def alter_scram_credentials(
    image: MetadataImage, request: AlterUserScramCredentialsRequest
) -> Decision[AlterUserScramCredentialsResponse]:
    deletions: dict[str, ScramCredentialDeletion] = {}
    upsertions: dict[str, ScramCredentialUpsertion] = {}
    refused: dict[str, Refusal] = {}
    wanted: list[ScramCredentialDeletion | ScramCredentialUpsertion]
    wanted = [*request.deletions, *request.upsertions]
    for each in wanted:
        name = each.name
        if name in refused:
            continue
        if name in deletions or name in upsertions:
            deletions.pop(name, None)
            upsertions.pop(name, None)
            refused[name] = _TWICE
            continue
        try:
            if isinstance(each, ScramCredentialDeletion):
                _check_deletion(each, image)
                deletions[name] = each
            else:
                _check_upsertion(each, image)
                upsertions[name] = each
        except Refusal as refusal:
            refused[name] = refusal
    records: list[Versioned] = []
    results = []
    for name in in_string_order(deletions):
        removal = RemoveUserScramCredentialRecord(name=name, mechanism=deletions[name].mechanism)
        records.append((removal, 0))
        results.append(_result(name))
    for name in in_string_order(upsertions):
        upsertion = upsertions[name]
        if not upsertion.salted_password:
            # Java makes no key of nothing.
            refused[name] = Refusal(ErrorCode.UNKNOWN_SERVER_ERROR, None)
            continue
        made = credential(
            _BY_TYPE[upsertion.mechanism],
            name,
            upsertion.salted_password,
            upsertion.salt,
            upsertion.iterations,
        )
        records.append((made, 0))
        results.append(_result(name))
    results += [_result(name, refused[name]) for name in in_string_order(refused)]
    return Decision(AlterUserScramCredentialsResponse(results=tuple(results)), records)


def _check_deletion(wanted: ScramCredentialDeletion, image: MetadataImage) -> None:
    mechanism = _checked(wanted.name, wanted.mechanism, image)
    if (mechanism.type, wanted.name) not in image.scram.credentials:
        raise Refusal(
            ErrorCode.RESOURCE_NOT_FOUND, "Attempt to delete a user credential that does not exist"
        )


def _check_upsertion(wanted: ScramCredentialUpsertion, image: MetadataImage) -> None:
    _checked(wanted.name, wanted.mechanism, image)
    if wanted.iterations < MIN_ITERATIONS:
        raise Refusal(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too few iterations")
    if wanted.iterations > MAX_ITERATIONS:
        raise Refusal(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too many iterations")


def _checked(name: str, mechanism: int, image: MetadataImage) -> Mechanism:
    version = image.features.metadata_version
    if version is None or not version.scram_supported:
        raise Refusal(
            ErrorCode.UNSUPPORTED_VERSION, "The current metadata.version does not support SCRAM"
        )
    if not name:
        raise Refusal(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Username must not be empty")
    found = _BY_TYPE.get(mechanism)
    if found is None:
        raise Refusal(ErrorCode.UNSUPPORTED_SASL_MECHANISM, "Unknown SCRAM mechanism")
    return found


def _result(name: str, refused: Refusal | None = None) -> AlterUserScramCredentialsResult:
    if refused is None:
        return AlterUserScramCredentialsResult(user=name, error_message=None)
    return AlterUserScramCredentialsResult(
        user=name, error_code=refused.code, error_message=refused.message
    )
