"""Cluster state as immutable images, and the deltas between them: one file for each domain."""

from __future__ import annotations

from kraftline.metadata.image.metadata import EMPTY, MetadataDelta, MetadataImage, Provenance

__all__ = ["EMPTY", "MetadataDelta", "MetadataImage", "Provenance"]
