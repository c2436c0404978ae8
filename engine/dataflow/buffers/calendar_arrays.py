"""The arrays of a calendar queue, and how its span is divided."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from engine.dataflow.buffers.buffer import NOTHING, Leaving, longer
from engine.kernels import blocks as pool
from engine.kernels import calendars as kernels
from engine.kernels.blocks import SIZE, Blocks
from engine.kernels.calendars import NEVER_LEAVES, Front
from engine.model.batch import Int32Array, Int64Array


@dataclass(frozen=True, slots=True)
class Division:
    """How the exits ahead of the clock are divided."""

    # How far ahead of the clock exits are, in their unit.
    span: int
    # How many partitions that is divided into, and how many were asked for; None: as the settings say.
    partitions: int
    asked: int | None

    @property
    def width(self) -> int:
        """The width of a partition, in the unit of exits."""
        return -(-self.span // self.partitions)


def no_blocks(lists: int, room: int) -> Blocks:
    """So many blocks, all free, for so many empty lists."""
    whole: Callable[[], Int32Array] = lambda: np.zeros(room, np.int32)  # noqa: E731
    blocks = Blocks(
        places=np.empty(room * SIZE, np.int32),
        exits=np.empty(room * SIZE, np.int64),
        following=whole(),
        before=whole(),
        lists=whole(),
        fills=whole(),
        heads=np.zeros(lists, np.int32),
        tails=np.zeros(lists, np.int32),
        counts=np.zeros(lists, np.int64),
        free=np.array([pool.NONE, 0], np.int64),
    )
    pool.set_free(0, blocks)
    return blocks


def grown(blocks: Blocks) -> Blocks:
    """Twice as many blocks; those that are there stay where they are."""
    before = len(blocks.following)
    room = 2 * before
    blocks = blocks._replace(
        places=longer(blocks.places, room * SIZE),
        exits=longer(blocks.exits, room * SIZE),
        following=longer(blocks.following, room),
        before=longer(blocks.before, room),
        lists=longer(blocks.lists, room),
        fills=longer(blocks.fills, room),
    )
    pool.set_free(before, blocks)
    return blocks


def chain_of(blocks: Blocks, of: int) -> list[int]:
    """The blocks of a list, in order."""
    chain = list[int]()
    if blocks.counts[of]:
        chain.append(int(blocks.heads[of]))
        while chain[-1] != blocks.tails[of]:
            chain.append(int(blocks.following[chain[-1]]))
    return chain


def no_front(room: int) -> Front:
    """An empty front with room for so many entries in either part."""
    places, exits = np.empty(room, np.int32), np.empty(room, np.int64)
    return Front(places, exits, places.copy(), exits.copy(), np.zeros(4, np.int64))


def entries_of(blocks: Blocks, front: Front) -> Leaving:
    """All entries, in no order. O(entries)."""
    room = int(blocks.counts.sum() + front.at[kernels.STOP] + front.at[kernels.IN_HEAP])
    places, exits = np.empty(room, np.int32), np.empty(room, np.int64)
    count = kernels.entries(blocks, front, places, exits)
    return Leaving(places[:count], exits[:count])


def empty_far(clock: Int64Array) -> None:
    """Note that no entry is beyond the last partition. clock: as :mod:`engine.kernels.calendars` has it."""
    clock[kernels.FAR_LEAST], clock[kernels.FAR_MOST] = NEVER_LEAVES, -NEVER_LEAVES


def joined(parts: list[Leaving]) -> Leaving:
    """The entries of several, one behind the other."""
    parts = [part for part in parts if len(part.places)]
    if len(parts) < 2:
        return parts[0] if parts else NOTHING
    return Leaving(
        np.concatenate([part.places for part in parts]), np.concatenate([part.exits for part in parts])
    )


def cut(places: Int32Array, exits: Int64Array, count: int) -> Leaving:
    """The first entries; their own arrays, where those are much longer."""
    if 2 * count >= len(places):
        return Leaving(places[:count], exits[:count])
    return Leaving(places[:count].copy(), exits[:count].copy())
