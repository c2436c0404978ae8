"""What is saved of a promising join: plain data, in the same commit as the rows."""

from __future__ import annotations

from dataclasses import dataclass

from engine.model.batch import BoolArray, Int64Array
from engine.promising.found import PairRun
from engine.promising.group import GroupCounts
from engine.promising.promising_set import PromisingEntries


@dataclass(frozen=True, slots=True)
class InputState:
    """What is saved of one input: ordinals, and the entries that lead to its rows."""

    floor: int
    seen: int
    # Entries that lead to rows below this were looked at already.
    lapsed_below: int
    # bool, of the rows from the floor on: which may have partners.
    wanted: BoolArray
    entries: PromisingEntries
    # How many rows each list of probing rows has, and all of these.
    list_counts: Int64Array
    list_rows: Int64Array
    # Pairs that will not be found: rows that probe up to the first, stored rows up to the second.
    missed_probing: int
    missed_stored: int


@dataclass(frozen=True, slots=True)
class JoinState:
    """What is saved of a promising join. is_kept: whether rows and entries are kept for all its members;
    else it begins anew. known: pairs that may be found once more. debt: units that visits took beyond what
    was granted.
    """

    inputs: tuple[InputState, ...]
    pairs: PairRun
    known: PairRun
    counts: GroupCounts
    is_kept: bool
    debt: int
