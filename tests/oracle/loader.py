"""What Kafka's own MetadataLoader and SnapshotGenerator do in a story."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from tests.oracle.lines import Json, LineProgram


class LoaderOracle(LineProgram):
    """One JVM, a new loader for every story; see `LoaderStories.java` for what a story is."""

    main = "LoaderStories"

    def tell(self, story: Mapping[str, Json]) -> list[dict[str, Any]]:
        """All that publishers, fault handler and emitter were told, in order."""
        return cast("list[dict[str, Any]]", self.ask(story)["told"])
