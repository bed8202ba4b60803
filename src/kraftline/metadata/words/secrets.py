"""Records without what nobody should see: Kafka's shell and logs hide the same."""

from __future__ import annotations

from typing import Any, Final

from kraftline.metadata.words.values import HIDDEN, is_secret
from kraftline.schema.metadata.config_record import ConfigRecord
from kraftline.schema.metadata.delegation_token_record import DelegationTokenRecord
from kraftline.schema.metadata.remove_delegation_token_record import RemoveDelegationTokenRecord
from kraftline.schema.metadata.user_scram_credential_record import UserScramCredentialRecord
from kraftline.schema.types import Message

_FIELDS: Final[dict[type[Message], tuple[str, ...]]] = {
    UserScramCredentialRecord: ("salt", "storedKey", "serverKey"),
    DelegationTokenRecord: ("tokenId",),
    RemoveDelegationTokenRecord: ("tokenId",),
}


def hide_secrets(record: Message, data: dict[str, Any], instead: str = HIDDEN) -> None:
    """Put something else in place of the secrets in a record's JSON."""
    fields = _FIELDS.get(type(record), ())
    if isinstance(record, ConfigRecord) and is_secret(record.name):
        fields = ("value",)
    for name in fields:
        data[name] = instead
