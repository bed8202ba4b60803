"""Which topics the one who asks may make, remove and see: asked by name while a decision is made,
since only it knows which names there are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import msgspec

from kraftline.controller.refusal import Refusal
from kraftline.schema.api.error_codes import ErrorCode

NOT_AUTHORIZED: Final = Refusal(ErrorCode.TOPIC_AUTHORIZATION_FAILED, "Topic authorization failed.")


def _everything(name: str) -> bool:
    return True


class TopicAccess(msgspec.Struct, frozen=True, kw_only=True):
    create: Callable[[str], bool] = _everything
    delete: Callable[[str], bool] = _everything
    describe: Callable[[str], bool] = _everything
    describe_configs: Callable[[str], bool] = _everything


EVERYTHING: Final = TopicAccess()
