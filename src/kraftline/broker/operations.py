"""What a client may do, as answers say it: a bit for each operation."""

from __future__ import annotations

from typing import Final

from kraftline.metadata.access import OPERATIONS, Resource, bits

# Without an authorizer everybody may do all that there is to do.
ALL_OF_TOPIC: Final = bits(OPERATIONS[Resource.TOPIC])
ALL_OF_CLUSTER: Final = bits(OPERATIONS[Resource.CLUSTER])
NOT_ASKED: Final = -(1 << 31)
