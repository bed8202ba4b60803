"""Who may come to a node and what they may do there, as its configuration says: the authorizer, and
the doors of its SASL listeners."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from kraftline.broker.authorization import Authorizer
from kraftline.broker.authorization.certificates import NameRules
from kraftline.broker.authorization.certified import Certified
from kraftline.broker.authorization.principal import parse_principal
from kraftline.config.effective import Config
from kraftline.config.listeners import Endpoint
from kraftline.config.node_settings import NodeSettings
from kraftline.config.sasl import SaslSettings, sasl_settings
from kraftline.config.values import BadConfig
from kraftline.server.connection import Handle
from kraftline.server.server import Limits

if TYPE_CHECKING:
    from kraftline.broker.broker import Broker
    from kraftline.broker.requests import Requests

_MAPPING: Final = "ssl.principal.mapping.rules"
_SUPER_USERS: Final = "super.users"
_WITHOUT_ACL: Final = "allow.everyone.if.no.acl.found"


class Security:
    """`authorizer` is None where everybody may do everything. BadConfig says what is wrong."""

    def __init__(self, config: Config, settings: NodeSettings) -> None:
        self.authorizer = _authorizer(config) if config["authorizer.class.name"] else None
        self._sasl: dict[str, SaslSettings] = {
            each.name: sasl_settings(config, each.name)
            for each in (*settings.listeners.brokers, *settings.listeners.controllers)
            if each.is_sasl
        }
        self._rules = {
            each.name: _name_rules(config, each.name)
            for each in (*settings.listeners.brokers, *settings.listeners.controllers)
            if each.is_tls
            and not each.is_sasl
            and config.of_listener(each.name, "ssl.client.auth") != "none"
        }

    def limits(self, endpoint: Endpoint, limits: Limits) -> Limits:
        """Who has not said who it is sends no large requests."""
        sasl = self._sasl.get(endpoint.name)
        if sasl is None:
            return limits
        most = min(sasl.most_bytes, limits.request_bytes)
        return msgspec.structs.replace(limits, request_bytes=most)

    def handle(
        self, endpoint: Endpoint, limits: Limits, requests: Requests, broker: Broker
    ) -> Handle:
        """What answers the frames of a listener."""
        sasl = self._sasl.get(endpoint.name)
        rules = self._rules.get(endpoint.name)
        if rules is not None:
            return Certified(requests.handle, rules).handle
        if sasl is None:
            return requests.handle
        # Only for those who use it.
        from kraftline.broker.sasl.authentication import Authentication
        from kraftline.broker.sasl.mechanisms import mechanisms_of

        return Authentication(
            requests,
            sasl,
            mechanisms_of(sasl, broker),
            most_bytes=limits.request_bytes,
            clock=broker.clock,
        ).handle


def _name_rules(config: Config, listener: str) -> NameRules:
    text = config.of_listener(listener, _MAPPING)
    try:
        return NameRules(",".join(text) if isinstance(text, list) else str(text or "DEFAULT"))
    except ValueError as problem:
        raise BadConfig.said(_MAPPING, f"listener {listener}: {problem}") from None


def _authorizer(config: Config) -> Authorizer:
    super_users = [each.strip() for each in config.unknown.get(_SUPER_USERS, "").split(";")]
    for each in filter(None, super_users):
        try:
            parse_principal(each)
        except ValueError as problem:
            raise BadConfig.said(_SUPER_USERS, str(problem)) from None
    return Authorizer(
        frozenset(filter(None, super_users)),
        allows_without_acl=config.unknown.get(_WITHOUT_ACL, "").strip().lower() == "true",
    )
