"""Sample keys with a seed."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from engine.kernels import sampling
from engine.language.evaluation.vector import Vector, strict
from engine.model.types import Type


def seeded(arguments: Sequence[Vector], type_: Type, n: int) -> Vector:
    """The keys that a constant seed makes of keys."""
    keys, seed = arguments
    found = np.empty(len(keys.values), np.int64)
    sampling.seeded_keys(np.uint64(seed.values.item()), keys.values, found)
    return strict([keys], type_, found)
