"""An image as the records of a snapshot, one a line, as Kafka's tools print them."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import msgspec

from kraftline.metadata.image import MetadataImage
from kraftline.metadata.words.secrets import hide_secrets
from kraftline.schema.jsonform import to_json
from kraftline.schema.metadata.registry import TYPE_NAMES


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
            hide_secrets(message, data)
        yield encode({"type": TYPE_NAMES[message.SPEC.key], "version": version, "data": data})
