"""What Kafka's own request handler answers from a metadata image, frame for frame."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import cast

from kraftline.metadata.write_options import Versioned
from kraftline.schema.metadata.frame import encode_record
from tests.oracle.lines import LineProgram


class Closed(Exception):
    """Kafka closes the connection; the message is its reason."""


class BrokerAnswers(LineProgram):
    """One JVM with KafkaApis over an image; `properties` are those of the broker."""

    main = "BrokerAnswers"

    def __init__(self, properties: Mapping[str, str] | None = None) -> None:
        super().__init__([f"{name}={value}" for name, value in (properties or {}).items()])

    def load(self, records: Iterable[Versioned]) -> None:
        """The image that these records make, from nothing."""
        self.ask({"op": "image", "records": [encode_record(*each).hex() for each in records]})

    def answer(self, frame: bytes, listener: str = "PLAINTEXT") -> bytes | None:
        """The answer to a frame, both without their lengths; None if there is none."""
        told = self.ask({"op": "ask", "hex": frame.hex(), "listener": listener})
        if "closed" in told:
            raise Closed(str(told["closed"]))
        return None if "silent" in told else bytes.fromhex(cast(str, told["hex"]))
