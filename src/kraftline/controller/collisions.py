"""Topics whose names metrics cannot tell apart: they differ only in dots and underscores."""

from __future__ import annotations

import itertools
import re

from kraftline.metadata.image import MetadataImage

_COLLIDING = re.compile(r"[._]")


def colliding(image: MetadataImage, name: str) -> str | None:
    """A topic that is there and that a new one of this name would be taken for."""
    known = image.topics.ids
    parts = _COLLIDING.split(name)
    marks = len(parts) - 1
    if not marks:
        return None
    if 1 << marks <= len(known):
        for chosen in itertools.product("._", repeat=marks):
            variant = parts[0] + "".join(map("".join, zip(chosen, parts[1:], strict=True)))
            if variant in known:
                return variant
        return None
    unified = _COLLIDING.sub("_", name)
    return next((each for each in known if _COLLIDING.sub("_", each) == unified), None)
