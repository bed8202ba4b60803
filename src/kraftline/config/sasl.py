"""How clients of a SASL listener say who they are, from Kafka's `sasl.*` settings: its own
(`listener.name.NAME.MECHANISM.sasl.jaas.config` and so on) first."""

from __future__ import annotations

from typing import Final

import msgspec

from kraftline.config.effective import Config
from kraftline.config.jaas import BadJaas, read_jaas
from kraftline.config.key import Value
from kraftline.config.tables import BROKER
from kraftline.config.values import BadConfig, parse

PLAIN: Final = "PLAIN"
SCRAM: Final = ("SCRAM-SHA-256", "SCRAM-SHA-512")
_SUPPORTED: Final = (PLAIN, *SCRAM)
_MODULES: Final = {
    PLAIN: "org.apache.kafka.common.security.plain.PlainLoginModule",
    **dict.fromkeys(SCRAM, "org.apache.kafka.common.security.scram.ScramLoginModule"),
}
_ENABLED: Final = "sasl.enabled.mechanisms"
_JAAS: Final = "sasl.jaas.config"
_USER: Final = "user_"


class SaslSettings(msgspec.Struct, frozen=True, kw_only=True):
    """`passwords` are those of PLAIN; `session_ms` by mechanism, 0 where sessions have no end;
    `failure_ms` is how long a refusal waits; `most_bytes` how large a first request may be."""

    mechanisms: tuple[str, ...]
    passwords: dict[str, str]
    session_ms: dict[str, int]
    failure_ms: int
    most_bytes: int

    def __repr__(self) -> str:
        return f"SaslSettings({','.join(self.mechanisms)})"


def sasl_settings(config: Config, listener: str) -> SaslSettings:
    """BadConfig says what is missing, or what is not supported."""
    mechanisms = config.of_listener(listener, _ENABLED)
    assert isinstance(mechanisms, list)
    if not mechanisms:
        raise BadConfig.said(_ENABLED, "No SASL mechanisms are enabled")
    passwords: dict[str, str] = {}
    for mechanism in mechanisms:
        if mechanism not in _SUPPORTED:
            raise BadConfig.said(
                _ENABLED,
                f"listener {listener}: SASL mechanism {mechanism} is not supported here; set "
                f"{_ENABLED} to some of {', '.join(_SUPPORTED)}.",
            )
        options = _options(config, listener, mechanism)
        if mechanism == PLAIN:
            passwords = {
                name.removeprefix(_USER): password
                for name, password in options.items()
                if name.startswith(_USER)
            }
    most = config.of_listener(listener, "sasl.server.max.receive.size")
    assert isinstance(most, int)
    return SaslSettings(
        # Kafka keeps them in a set of Java's, in whose order they are told.
        mechanisms=tuple(mechanisms),
        passwords=passwords,
        session_ms={each: _session_ms(config, listener, each) for each in mechanisms},
        failure_ms=config.whole("connection.failed.authentication.delay.ms"),
        most_bytes=most,
    )


def _own(config: Config, listener: str, mechanism: str, name: str) -> str | None:
    """What is set for one mechanism of one listener."""
    return config.unknown.get(f"listener.name.{listener.lower()}.{mechanism.lower()}.{name}")


def _options(config: Config, listener: str, mechanism: str) -> dict[str, str]:
    key = f"listener.name.{listener.lower()}.{mechanism.lower()}.{_JAAS}"
    text = _own(config, listener, mechanism, _JAAS)
    if text is None:
        raise BadConfig.said(
            key,
            f"Could not find a 'KafkaServer' or '{listener.lower()}.KafkaServer' entry in the JAAS "
            f"configuration. Set {key}; files of JAAS entries are not read.",
        )
    try:
        entries = read_jaas(text)
    except BadJaas as problem:
        raise BadConfig.said(key, f"{key}: {problem}") from None
    if len(entries) != 1:
        raise BadConfig.said(
            key,
            f"JAAS config property contains {len(entries)} login modules, should be 1 module",
        )
    if entries[0].module != _MODULES[mechanism]:
        raise BadConfig.said(
            key, f"{key} names {entries[0].module}; {mechanism} needs {_MODULES[mechanism]}."
        )
    return entries[0].options


def _session_ms(config: Config, listener: str, mechanism: str) -> int:
    name = "connections.max.reauth.ms"
    own = _own(config, listener, mechanism, name)
    found: Value = config.of_listener(listener, name) if own is None else parse(BROKER[name], own)
    assert isinstance(found, int)
    return max(0, found)
