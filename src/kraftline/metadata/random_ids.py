"""New random ids: of clusters, directories, topics."""

from __future__ import annotations

import os

from kraftline.schema.uuids import Uuid


def random_uuid() -> Uuid:
    """A uuid of version 4, as Kafka draws them; its text never starts with a dash, which a
    command line would take for an option. The reserved ids are no version 4."""
    while True:
        raw = bytearray(os.urandom(16))
        raw[6] = raw[6] & 0x0F | 0x40
        raw[8] = raw[8] & 0x3F | 0x80
        drawn = Uuid(bytes(raw))
        if not str(drawn).startswith("-"):
            return drawn
