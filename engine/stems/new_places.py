"""Where queries that just came have their matches: bits of words that hold them alone, or pairs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from engine.kernels.bitmaps import Words
from engine.model.batch import BoolArray, Int32Array, Int64Array
from engine.store.matches.cohorts import SELECTIVE


@dataclass(frozen=True, slots=True)
class NewPlaces:
    """slots: int64[n], ascending. standing: by slot, which queries stand. dense, selective: those of the
    slots with a bit, and the others. words: those that hold a new query, ascending; masks: which bits of
    each. local: int64[dense], the bits among these words.
    """

    slots: Int64Array
    standing: BoolArray
    dense: Int64Array
    selective: Int32Array
    words: list[int]
    masks: Words
    local: Int64Array

    @classmethod
    def of(cls, slots: Int64Array, places: Int32Array, standing: BoolArray) -> NewPlaces:
        """places: by slot, its bit or SELECTIVE."""
        place = places[slots]
        bits = place[place != SELECTIVE].astype(np.int64)
        words, which = np.unique(bits >> 6, return_inverse=True)
        masks = np.zeros(len(words), np.uint64)
        np.bitwise_or.at(masks, which, np.uint64(1) << (bits & 63).astype(np.uint64))
        return cls(
            slots,
            standing,
            slots[place != SELECTIVE],
            slots[place == SELECTIVE].astype(np.int32),
            words.tolist(),
            masks,
            which << 6 | bits & 63,
        )
