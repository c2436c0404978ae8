"""The matches of a batch with selective slots, as pairs of a row and a slot."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from engine.model.batch import Int32Array


@dataclass(frozen=True, slots=True)
class RowSlots:
    """Row and slot of each match, rows ascending, no pair twice. rows: uint16, places in the batch."""

    rows: npt.NDArray[np.uint16]
    slots: Int32Array

    def __len__(self) -> int:
        return len(self.rows)

    def take(self, which: npt.NDArray[np.generic]) -> RowSlots:
        return RowSlots(self.rows[which], self.slots[which])


NO_PAIRS = RowSlots(np.zeros(0, np.uint16), np.zeros(0, np.int32))
