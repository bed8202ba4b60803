"""Kafka's generated message classes, asked to encode and decode by message name."""

from __future__ import annotations

from typing import cast

from tests.oracle.lines import Json, LineProgram


class MessageBridge(LineProgram):
    """One JVM that answers for every message, record and header that Kafka generates.

    Names are those of the definitions: `PartitionRecord`, `MetadataRequest`,
    `OffsetCommitValue`, `LeaderChangeMessage`, `RequestHeader`.
    """

    main = "MessageBridge"

    def encode(self, name: str, version: int, message: Json) -> bytes:
        """The bare bytes of one message, as `write` of the generated class makes them."""
        answer = self.ask({"op": "encode", "name": name, "version": version, "json": message})
        return bytes.fromhex(cast(str, answer["hex"]))

    def decode(self, name: str, version: int, data: bytes) -> Json:
        """What Kafka reads from these bytes; all of them must be used."""
        answer = self.ask({"op": "decode", "name": name, "version": version, "hex": data.hex()})
        if answer["remaining"]:
            raise ValueError(f"{answer['remaining']} bytes left after {name} v{version}")
        return answer["json"]

    def encode_record(self, name: str, version: int, message: Json) -> bytes:
        """A metadata record with its frame (frame version, api key, record version)."""
        ask: dict[str, Json] = {"op": "encodeRecord", "name": name, "version": version}
        answer = self.ask({**ask, "json": message})
        return bytes.fromhex(cast(str, answer["hex"]))

    def decode_record(self, data: bytes) -> tuple[str, int, Json]:
        """Name, version and content of a framed metadata record."""
        answer = self.ask({"op": "decodeRecord", "hex": data.hex()})
        return cast(str, answer["name"]), cast(int, answer["version"]), answer["json"]

    def versions(self, name: str) -> tuple[int, int]:
        """Lowest and highest version of a message."""
        answer = self.ask({"op": "versions", "name": name})
        return cast(int, answer["lowest"]), cast(int, answer["highest"])

    def apis(self) -> dict[str, Json]:
        """Every API: key, version range, header versions per version."""
        return self.ask({"op": "apis"})
