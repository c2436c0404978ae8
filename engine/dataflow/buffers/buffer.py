"""What state buffers have in common.

An *entry* is a place, the slot of whoever holds the values, and the instant of its exit, in halves of ms
or in any other unit that only ascends; FOREVER: none. A place has one entry at most. One writer.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from engine.model.batch import Int32Array, Int64Array

Number = TypeVar("Number", np.int32, np.int64)

NOBODY = -1
NO_PLACES: Int32Array = np.empty(0, np.int32)
NO_EXITS: Int64Array = np.empty(0, np.int64)


class EntryNotFound(LookupError):
    """A place was to be removed that has no entry with that exit."""


@dataclass(slots=True)
class Work:
    """What a buffer has done, or another structure of state, in entries."""

    visited: int = 0
    """Read to expire, to sort or to find entries."""
    inserted: int = 0
    deleted: int = 0
    """Taken out, in any way."""
    negative: int = 0
    """Taken out before their exit."""
    dropped: int = 0
    """Taken out unread."""

    def __add__(self, other: Work) -> Work:
        return Work(
            self.visited + other.visited,
            self.inserted + other.inserted,
            self.deleted + other.deleted,
            self.negative + other.negative,
            self.dropped + other.dropped,
        )


class Leaving(NamedTuple):
    """Entries that left. places: int32[n]. exits: int64[n]."""

    places: Int32Array
    exits: Int64Array


NOTHING = Leaving(NO_PLACES, NO_EXITS)


class Buffer(ABC):
    """Entries until their exit."""

    def __init__(self) -> None:
        self.work = Work()
        self._dropped: list[Int32Array] = []
        self._dropped_count = 0

    @abstractmethod
    def insert(self, places: Int32Array, exits: Int64Array) -> None:
        """Entries come, in this order. places: int32[n], each without an entry. exits: int64[n]."""

    @abstractmethod
    def take(self, until: int) -> Leaving:
        """The entries whose exit is at ``until`` or before, taken out; where the structure has an order of
        exits, in that.
        """

    def expire(self, until: int) -> Int32Array:
        """The places of :meth:`take`."""
        return self.take(until).places

    @abstractmethod
    def drop(self, until: int) -> int:
        """Let go of entries whose exit is at ``until`` or before where nobody reads what leaves, as far as
        that takes no look at each: others stay until later. Returns how many; see :meth:`reclaim`.
        """

    @abstractmethod
    def remove(self, places: Int32Array, exits: Int64Array) -> None:
        """Entries leave before their exit, each once. exits: those they were inserted with. Raises
        EntryNotFound if one is not there, when those that are there are removed.
        """

    @abstractmethod
    def live(self, now: int) -> Int32Array:
        """The places of the entries whose exit is after ``now``, in the structure's order. O(entries)."""

    @abstractmethod
    def __len__(self) -> int:
        """How many entries there are, those included that are past their exit and were not taken out yet."""

    @property
    @abstractmethod
    def nbytes(self) -> int:
        """Bytes of all arrays."""

    @abstractmethod
    def _check(self) -> None:
        """Assert what always holds."""

    # --- what was dropped -------------------------------------------------------------------------

    @property
    def waiting(self) -> int:
        """How many places were dropped and not reclaimed."""
        return self._dropped_count

    def reclaim(self, wanted: int) -> Int32Array:
        """Places that were dropped, for their owner to use again: ``wanted`` at least where so many are
        waiting, some more at times. O(places returned).
        """
        found: list[Int32Array] = []
        count = 0
        while self._dropped and count < wanted:
            found.append(self._dropped.pop())
            count += len(found[-1])
        self._dropped_count -= count
        return found[0] if len(found) == 1 else np.concatenate(found) if found else NO_PLACES

    def _put_down(self, places: Int32Array) -> None:
        """Places were dropped."""
        if len(places):
            self._dropped.append(places)
            self._dropped_count += len(places)

    def _taken(self, places: Int32Array, exits: Int64Array) -> Leaving:
        self.work.deleted += len(places)
        return Leaving(places, exits)

    def _left_out(self, found: int, wanted: int) -> None:
        """So many entries were removed."""
        self.work.deleted += found
        self.work.negative += found
        if found < wanted:
            raise EntryNotFound(f"{wanted - found} of {wanted} entries to remove are not there")


def longer(array: npt.NDArray[Number], room: int, fill: int | None = None) -> npt.NDArray[Number]:
    """Copies an array into one with ``room`` entries; those behind the old ones are ``fill``, or undefined
    where that is None.
    """
    made: npt.NDArray[Number] = np.empty(room, array.dtype)
    made[: len(array)] = array
    if fill is not None:
        made[len(array) :] = fill
    return made


def room_for(count: int, room: int) -> int:
    """``room`` doubled until ``count`` fit."""
    while room < count:
        room *= 2
    return room
