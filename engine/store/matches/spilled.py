"""Row lists of sealed segments that leave memory; where each begins, and bits, stay."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from engine.model.spill import SpillSpace
from engine.store.matches.part_matches import PartMatches

LEAST_BYTES = 1 << 16
"""Fewer bytes of a segment stay: each time takes a file."""


def spill(matches: PartMatches, space: SpillSpace) -> int:
    """Have the row lists of a sealed segment on disk that are not. Returns the bytes that leave memory; 0:
    they are few, or there is no room. O(lists + bytes).
    """
    words = [
        (lists, word)
        for lists in matches.bits.row_lists()
        for word, each in enumerate(lists)
        if not each.is_spilled and len(each.places)
    ]
    lots = [number for number, lot in enumerate(matches.lists) if not lot.is_spilled and len(lot.rows)]
    held = [lists[word].places for lists, word in words] + [matches.lists[number].rows for number in lots]
    nbytes = sum(each.nbytes for each in held)
    if nbytes < LEAST_BYTES:
        return 0
    written = space.write([np.concatenate(held)])
    if written is None:
        return 0
    places = iter(np.split(written[0], np.cumsum([len(each) for each in held[:-1]])))
    for lists, word in words:
        lists[word] = replace(lists[word], places=next(places), is_spilled=True)
    kept = list(matches.lists)
    for number in lots:
        kept[number] = replace(kept[number], rows=next(places), is_spilled=True)
    matches.lists = tuple(kept)
    return nbytes
