"""What a controller does first: an empty log gets the seed of the cluster."""

from __future__ import annotations

from kraftline.controller.decision import Decision
from kraftline.metadata.bootstrap import BootstrapMetadata
from kraftline.metadata.image import MetadataImage
from kraftline.metadata.write_options import Versioned


def activate(image: MetadataImage, bootstrap: BootstrapMetadata) -> Decision[bool]:
    """Whether the cluster is new."""
    if image.features.metadata_version is not None:
        return Decision(False)
    records: list[Versioned] = [(each, 0) for each in bootstrap.records]
    return Decision(True, records)
