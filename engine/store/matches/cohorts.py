"""Where the matches of each slot are kept: as a bit of a word column, or as row lists.

One object serves all segments that were filled under it, so that a slot may change its cohort while the rows
it has met stay as they are: later segments have another object. A new slot is put into all of them alike.
"""

from __future__ import annotations

import numpy as np

from engine.model.batch import Int32Array

SELECTIVE = -1
"""The place of a slot whose matches are lists."""


class Cohorts:
    """place[slot]: its bit among the word columns, or SELECTIVE. ``epoch``: ascending, one an object.

    Readers hold it beside their segments. A place is written only for a slot nobody may read yet: its
    generation was raised before.
    """

    __slots__ = ("__weakref__", "epoch", "place")

    def __init__(self, epoch: int, place: Int32Array) -> None:
        self.epoch = epoch
        self.place = place

    def make_room(self, slots: int) -> None:
        """At least so many slots."""
        if slots > len(self.place):
            more = max(slots, 2 * len(self.place)) - len(self.place)
            self.place = np.concatenate([self.place, np.full(more, SELECTIVE, np.int32)])

    def of(self, slot: int) -> int:
        """The place of a slot; SELECTIVE for one that came later."""
        place = self.place
        return int(place[slot]) if slot < len(place) else SELECTIVE
