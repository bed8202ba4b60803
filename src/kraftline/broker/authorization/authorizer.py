"""Kafka's StandardAuthorizer: what ACLs allow.

- Super users may do everything.
- A denial that matches counts more than whatever allows; what nothing allows is denied. Where no
  ACL at all matches a resource, `allow.everyone.if.no.acl.found` decides.
- ACLs match literally, by the beginning of a name, or with `*` for every name; for one principal or
  for `User:*`; from one host or from `*`.
"""

from __future__ import annotations

import logging
from typing import Final

from kraftline.broker.authorization.principal import Principal
from kraftline.broker.authorization.rules import PatternRules, ResourceRules
from kraftline.metadata.access import WILDCARD, Operation, Permission, Resource
from kraftline.metadata.image import MetadataDelta, MetadataImage
from kraftline.metadata.image.acls import AclsImage
from kraftline.metadata.loader import LeaderAndEpoch, Manifest, MetadataPublisher

_logger = logging.getLogger(__name__)
_KEPT: Final = 50_000  # decisions that are remembered until an ACL changes


class Authorizer(MetadataPublisher):
    """`authorizer.class.name`, `super.users` and `allow.everyone.if.no.acl.found` as configured:
    who is not a super user goes by the ACLs of the newest image."""

    def __init__(self, super_users: frozenset[str], *, allows_without_acl: bool) -> None:
        self._super_users = super_users
        self._allows_without_acl = allows_without_acl
        self._acls = AclsImage()
        self._resources: dict[int, ResourceRules] = {}
        # What was decided since an ACL changed; without a name: of any resource of a type.
        self._decided: dict[tuple[str, str, int, int, str | None], bool] = {}

    @property
    def name(self) -> str:
        return "AclPublisher"

    def on_metadata_update(
        self, delta: MetadataDelta, image: MetadataImage, manifest: Manifest
    ) -> None:
        if image.acls is self._acls:
            return
        if delta.acls is not None and delta.acls.image is self._acls:
            for key in delta.acls.changes:
                before, after = self._acls.acls.get(key), image.acls.acls.get(key)
                if before is not None:
                    self._rules(before.resource_type).change(before, -1)
                if after is not None:
                    self._rules(after.resource_type).change(after, 1)
        else:
            self._resources.clear()
            for acl in image.acls.acls.values():
                self._rules(acl.resource_type).change(acl, 1)
        self._acls = image.acls
        self._decided.clear()

    def on_controller_change(self, leader: LeaderAndEpoch) -> None:
        """Nothing depends on it."""

    async def close(self) -> None:
        """Nothing is held."""

    def allows(
        self, principal: Principal, host: str, operation: Operation, resource: Resource, name: str
    ) -> bool:
        who = f"{principal.type}:{principal.name}"
        key = (who, host, operation, resource, name)
        decided = self._decided.get(key)
        if decided is None:
            decided = who in self._super_users or self._decide(who, host, operation, resource, name)
            self._keep(key, decided)
        if not decided:
            _logger.debug(
                "%s may not %s %s %s from %s", who, operation.name, resource.name, name, host
            )
        return decided

    def allows_some(
        self, principal: Principal, host: str, operation: Operation, resource: Resource
    ) -> bool:
        """Is there any resource of this type that the principal may do this with?"""
        who = str(principal)
        key = (who, host, operation, resource, None)
        decided = self._decided.get(key)
        if decided is None:
            # As in Kafka, a name stands for all that no ACL is about.
            decided = self.allows(
                principal, host, operation, resource, "hardcode"
            ) or self._decide_some(who, host, operation, resource)
            self._keep(key, decided)
        return decided

    def _keep(self, key: tuple[str, str, int, int, str | None], decided: bool) -> None:
        if len(self._decided) >= _KEPT:
            self._decided.clear()
        self._decided[key] = decided

    def _rules(self, resource: int) -> ResourceRules:
        found = self._resources.get(resource)
        if found is None:
            found = self._resources[resource] = ResourceRules()
        return found

    def _decide(
        self, who: str, host: str, operation: Operation, resource: Resource, name: str
    ) -> bool:
        rules = self._resources.get(resource)
        if rules is None:
            return self._allows_without_acl
        is_known, allowed, denied = rules.asked(name, who, host)
        bit = 1 << operation
        if denied & bit:
            return False
        return bool(allowed & bit) or (not is_known and self._allows_without_acl)

    def _decide_some(self, who: str, host: str, operation: Operation, resource: Resource) -> bool:
        rules = self._resources.get(resource)
        if rules is None:
            return False

        def named(patterns: dict[str, PatternRules], permission: Permission) -> set[str]:
            return {
                name
                for name, each in patterns.items()
                if each.says(who, host, operation, permission)
            }

        denied = named(rules.literal, Permission.DENY)
        if WILDCARD in denied:
            return False
        allowed = named(rules.literal, Permission.ALLOW)
        if WILDCARD in allowed:
            return True
        denied_prefixes = named(rules.prefixed, Permission.DENY)

        def is_free(name: str) -> bool:
            return not any(name[:length] in denied_prefixes for length in range(1, len(name) + 1))

        return any(map(is_free, allowed - denied)) or any(
            map(is_free, named(rules.prefixed, Permission.ALLOW))
        )
