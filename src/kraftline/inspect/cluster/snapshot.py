"""An image as the records of a snapshot, one a line, as Kafka's tools print them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from kraftline.metadata.image import MetadataImage
from kraftline.metadata.words.values import HIDDEN, is_secret
from kraftline.schema.jsonform import to_json
from kraftline.schema.metadata.config_record import ConfigRecord
from kraftline.schema.metadata.delegation_token_record import DelegationTokenRecord
from kraftline.schema.metadata.registry import TYPE_NAMES
from kraftline.schema.metadata.user_scram_credential_record import UserScramCredentialRecord
from kraftline.schema.types import Message


def snapshot_lines(
    image: MetadataImage, secrets: bool, on_loss: Callable[[str], None] | None = None
) -> Iterator[bytes]:
    """`{"type", "version", "data"}` in the versions that the image's metadata version writes.

    Hidden secrets make lines that no Kafka would load; with `secrets` all of it is there.
    """
    encode = msgspec.json.Encoder().encode
    for message, version in image.write(image.write_options(on_loss)):
        data = to_json(message, version)
        if not secrets:
            _hide(message, data)
        yield encode({"type": TYPE_NAMES[message.SPEC.key], "version": version, "data": data})


def _hide(message: Message, data: dict[str, Any]) -> None:
    if isinstance(message, UserScramCredentialRecord):
        for name in ("salt", "storedKey", "serverKey"):
            data[name] = HIDDEN
    elif isinstance(message, ConfigRecord) and is_secret(message.name):
        data["value"] = HIDDEN
    elif isinstance(message, DelegationTokenRecord):
        data["tokenId"] = HIDDEN
