"""Our request handler over an image and nothing else, as `tests.oracle.answers` has Kafka's."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import SimpleNamespace
from typing import cast

from kraftline.broker.auto_topics import AutoTopics
from kraftline.broker.broker import Broker
from kraftline.broker.cache import MetadataCache
from kraftline.broker.requests import Requests
from kraftline.config.effective import read_config
from kraftline.controller.controller import Controller
from kraftline.metadata.image import EMPTY, MetadataDelta, Provenance
from kraftline.metadata.write_options import Versioned
from kraftline.server.connection import Connection

CLUSTER_ID = "answering"


class OurAnswers:
    """The broker and its connections are only what the answers from metadata need of them."""

    def __init__(self, properties: Mapping[str, str] | None = None) -> None:
        standing = {
            "process.roles": "broker,controller",
            "node.id": "1",
            "listeners": "PLAINTEXT://127.0.0.1:9092,CONTROLLER://127.0.0.1:9093",
            "controller.listener.names": "CONTROLLER",
            "controller.quorum.bootstrap.servers": "127.0.0.1:9093",
            "auto.create.topics.enable": "false",
        }
        self.cache = MetadataCache()
        config = read_config(None, standing | dict(properties or {}))
        controller = SimpleNamespace(log=SimpleNamespace(kraft_version=1))
        broker = SimpleNamespace(
            cache=self.cache,
            cluster_id=CLUSTER_ID,
            config=config,
            controller=controller,
            authorizer=None,
            auto_topics=AutoTopics(cast(Controller, controller), config),
        )
        self.requests = Requests(cast(Broker, broker))

    def load(self, records: Iterable[Versioned]) -> None:
        """The image that these records make, from nothing."""
        delta = MetadataDelta(EMPTY)
        offset = -1
        for record, _ in records:
            delta.replay(record)
            offset += 1
        self.cache.image = delta.apply(Provenance(offset, 1, 1000, True))

    def answer(self, frame: bytes, listener: str = "PLAINTEXT") -> bytes | None:
        """The answer to a frame, both without their lengths; None if there is none."""
        connection = SimpleNamespace(listener=SimpleNamespace(name=listener), peer="here", state={})
        made = self.requests.handle(frame, cast(Connection, connection))
        assert made is None or isinstance(made, list)
        return None if made is None else b"".join(cast("list[bytes]", made))
