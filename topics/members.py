"""Which member of a JSON record is which column.

A member is the column of exactly its name. Where a record has no such member, the one member whose name
differs in letter case alone is the column: ``deviceId`` is the column ``deviceid``, as SQL folds the name in
``CREATE STREAM s (deviceId STRING)``. Two members that differ from a column, and from each other, in letter
case alone are ambiguous: such a record gives no row. Columns that differ from each other in letter case alone
(both quoted) are found by their exact names only.

A :class:`Layout` is how some records spell their columns: records of one layout are read by columns at once.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
import orjson

MEMBERS_MAX = 10_000
"""A record with more members is not taken as a model of others."""

SPELLINGS_MAX = 64
SPELLING_MEMBERS_MAX = 256

Spelling = tuple[tuple[str, bytes], ...]
"""For each column the name of its member, and that in quotes."""


def folded(name: str) -> tuple[str, bool]:
    """Equal for names that differ in letter case alone. A letter beyond ASCII is never one of ASCII."""
    return name.lower(), name.isascii()


@dataclass(frozen=True, slots=True)
class Layout:
    """How records spell columns.

    names: of the columns, in order, their members' names. raw: as bytes between quotes, what a record may
    hold; any other name that could be a column's is another layout.
    """

    names: tuple[str, ...]
    raw: tuple[bytes, ...]

    @property
    def packed(self) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64]]:
        """uint8, the names one after another, and int64[n], where each ends."""
        return _packed(self.raw)


@dataclass(frozen=True, slots=True)
class Members:
    """The columns of some records. columns: their names. near: by folded name: the column, if there is just
    one.
    """

    columns: tuple[str, ...]
    aside: frozenset[str]
    near: Mapping[tuple[str, bool], str]
    exact: Layout
    folds: tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64]]
    """The folded names of ASCII in ``near``, packed as in :class:`Layout`."""
    beyond_ascii: bool
    spellings: dict[tuple[str, ...], Spelling | None] = field(default_factory=dict, compare=False, repr=False)
    """By members of a record seen lately: how it spells the columns; None where that is ambiguous."""

    def spelling(self, given: tuple[str, ...]) -> Spelling | None:
        """How a record with these members, all different, spells the columns; None where that is ambiguous,
        or there are very many.
        """
        try:
            return self.spellings[given]
        except KeyError:
            pass
        if len(given) > SPELLING_MEMBERS_MAX:
            return None
        near: dict[str, list[str]] = {}
        for member in given:
            column = self.column_of(member)
            if column is not None:
                near.setdefault(column, []).append(member)
        exact = set(given)
        names = [[column] if column in exact else near.get(column, [column]) for column in self.columns]
        found: Spelling | None = None
        if all(len(one) == 1 for one in names):
            found = tuple((name, b'"%s"' % name.encode()) for (name,) in names)
        if len(self.spellings) >= SPELLINGS_MAX:
            self.spellings.clear()
        self.spellings[given] = found
        return found

    def column_of(self, member: str) -> str | None:
        """The column that a member is by a name that differs in letter case; None for its exact name too."""
        if member in self.aside or member in self.columns:
            return None
        return self.near.get(folded(member))

    def layout_of(self, record: bytes) -> Layout | None:
        """How a record spells its columns; None where that is ambiguous, or the record is none."""
        try:
            members: Any = orjson.loads(record)
        except ValueError:
            return None
        if not isinstance(members, dict) or len(members) > MEMBERS_MAX:
            return None
        spelt: dict[str, str] = {}
        known = list(self.columns)
        for member in members:
            column = self.column_of(member)
            if column is not None:
                if column in spelt or column in members:
                    return None
                spelt[column] = member
            elif not member.isascii() or not member.isprintable() or '"' in member or "\\" in member:
                known.append(member)
        if not spelt and len(known) == len(self.columns):
            return self.exact
        names = tuple(spelt.get(column, column) for column in self.columns)
        return Layout(names, _raw((*names, *known[len(self.columns) :])))


@lru_cache(maxsize=256)
def members_of(
    columns: tuple[str, ...], aside: frozenset[str] = frozenset(), *, exact: bool = False
) -> Members:
    """The members of records with these columns. aside: columns that are read from elsewhere, whose members
    are passed over. exact: letter case counts.
    """
    counts = Counter(map(folded, {*columns, *aside}))
    near = {folded(name): name for name in columns if counts[folded(name)] == 1 and not exact}
    plain = [name.encode() for name, ascii_ in near if ascii_]
    beyond = any(not ascii_ for _, ascii_ in near)
    return Members(columns, aside, near, Layout(columns, _raw(columns)), _packed(plain), beyond)


def _raw(names: Iterable[str]) -> tuple[bytes, ...]:
    """Names as JSON writes them, with characters beyond ASCII as they are and escaped."""
    forms: dict[bytes, None] = {}
    for name in names:
        forms[orjson.dumps(name)[1:-1]] = None
        forms[json.dumps(name)[1:-1].encode()] = None
    return tuple(forms)


def _packed(names: Iterable[bytes]) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64]]:
    held = list(names)
    ends = np.cumsum(np.fromiter(map(len, held), np.int64, len(held)))
    return np.frombuffer(b"".join(held), np.uint8), ends
