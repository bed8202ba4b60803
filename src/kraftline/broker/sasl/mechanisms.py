"""The mechanisms of a listener, and where they find whom they let in: passwords of PLAIN in the
configuration, keys of SCRAM in the newest image."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial

from kraftline.broker.authorization.principal import user
from kraftline.broker.broker import Broker
from kraftline.broker.sasl.exchange import Exchange
from kraftline.broker.sasl.plain import Plain
from kraftline.broker.sasl.scram import FindIdentity, Identity, Scram
from kraftline.broker.sasl.token_identities import TokenIdentities
from kraftline.config.sasl import PLAIN, SaslSettings
from kraftline.metadata.add_scram import MECHANISMS, Mechanism


def mechanisms_of(settings: SaslSettings, broker: Broker) -> dict[str, Callable[[], Exchange]]:
    found: dict[str, Callable[[], Exchange]] = {}
    for name in settings.mechanisms:
        if name == PLAIN:
            found[name] = partial(Plain, settings.passwords)
        else:
            mechanism = MECHANISMS[name]
            found[name] = partial(Scram, mechanism, _finder(mechanism, broker))
    return found


def _finder(mechanism: Mechanism, broker: Broker) -> FindIdentity:
    tokens = TokenIdentities(mechanism, broker)

    def find(name: str, by_token: bool) -> Identity | Awaitable[Identity | None] | None:
        if by_token:
            return tokens.find(name)
        credential = broker.cache.image.scram.credentials.get((mechanism.type, name))
        return None if credential is None else Identity(user(name), credential)

    return find
