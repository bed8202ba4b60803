"""What happened to partitions, in the words of `metadata.words`."""

from __future__ import annotations

import numpy as np

from kraftline.spark.history.isrs import isrs
from kraftline.spark.history.leaders import leaders
from kraftline.spark.history.marks import Told
from kraftline.spark.history.placed import CLEAR, NONE, WHOLE
from kraftline.spark.history.rare import rare
from kraftline.spark.history.steps import Steps
from kraftline.spark.history.whys import Whys


def told(steps: Steps) -> list[Told]:
    """What happened to the partitions of a chunk, of those that were there and not in their
    creation; bookkeeping is left out."""
    at = steps.at
    created = (at.how == WHOLE) & (at.unit == at.lives.began_unit[at.life])
    is_record = (at.unit != NONE) & (at.how != CLEAR)
    chosen = np.flatnonzero(steps.had_before & is_record & ~created)
    whys = Whys(steps)
    return [*leaders(steps, chosen, whys), *isrs(steps, chosen, whys), *rare(steps, chosen)]
