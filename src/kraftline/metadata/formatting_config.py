"""The few settings of `server.properties` that formatting needs: who the node is, where its
directories are and which quorum it belongs to. All else is checked as for a start: a file that
Kafka would not take is no good for a first one."""

from __future__ import annotations

import msgspec

from kraftline.config.effective import Config
from kraftline.config.node_settings import node_settings
from kraftline.config.quorum import static_voters


class FormatConfig(msgspec.Struct, frozen=True, kw_only=True):
    """`controller_listener` is the first of controller.listener.names; `controller` is the host and
    port where others reach this node's controller, None on a mere broker."""

    node_id: int
    log_dirs: tuple[str, ...]
    metadata_log_dir: str
    controller_listener: str
    controller: tuple[str, int] | None
    static_voters: tuple[int, ...] = ()
    unstable_features: bool = False


def format_config(config: Config) -> FormatConfig:
    """BadConfig, in Kafka's words, where Kafka would not take the configuration."""
    settings = node_settings(config)
    told = settings.listeners.advertised_controllers
    return FormatConfig(
        node_id=settings.node_id,
        log_dirs=settings.log_dirs,
        metadata_log_dir=settings.metadata_log_dir,
        controller_listener=config.texts("controller.listener.names")[0],
        # Nobody can connect to the address that stands for all.
        controller=(told[0].host or "localhost", told[0].port) if told else None,
        static_voters=tuple(static_voters(config)),
        unstable_features=config["unstable.feature.versions.enable"] is True,
    )
