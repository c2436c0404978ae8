"""AT TIME ZONE: from instants to what a clock in a zone shows, and back.

What a clock shows is a TIMESTAMP too: the instant at which a clock in UTC shows the same. Cost: a binary
search for each row; zones that are no literals are looked up once per distinct name.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from engine.language.evaluation.temporal import TRUNCATED, of_part, outside
from engine.language.evaluation.vector import Array, Vector, compact, either, height, spread, strict
from engine.language.evaluation.zone_tables import ZoneTable, zone_named
from engine.model.types import TIMESTAMP, Type

Moved = Callable[[ZoneTable, Array], Array]


def to_wall(table: ZoneTable, ms: Array) -> Array:
    """What a clock shows at instants."""
    return np.asarray(ms + table.offsets[np.searchsorted(table.instants, ms, side="right") - 1])


def to_instant(table: ZoneTable, ms: Array) -> Array:
    """When a clock shows something: the later instant where it does so twice; where it never does, as if it
    had not been put forward.
    """
    return np.asarray(ms - table.offsets[np.maximum(np.searchsorted(table.walls, ms, side="right") - 1, 0)])


def from_utc(arguments: Sequence[Vector], type_: Type, n: int) -> Vector:
    """FROM_UTC_TIMESTAMP(t, zone); an error outside the years 1 to 9999, and for a zone that is none."""
    return _in_zone(arguments[0], arguments[1], to_wall)


def to_utc(arguments: Sequence[Vector], type_: Type, n: int) -> Vector:
    """TO_UTC_TIMESTAMP(t, zone); an error outside the years 1 to 9999, and for a zone that is none."""
    return _in_zone(arguments[0], arguments[1], to_instant)


def truncate(arguments: Sequence[Vector], type_: Type, n: int) -> Vector:
    """DATE_TRUNC(part, t, zone): the instant at which the part began there. An error where a clock there
    shows a year that is none of 1 to 9999.
    """
    begin = TRUNCATED[of_part(arguments[0])]
    if len(arguments) == 2:
        values = begin(arguments[1].values)
        return strict(arguments[1:], TIMESTAMP, values, outside(values))

    def begun(table: ZoneTable, ms: Array) -> Array:
        walls = to_wall(table, ms)
        wrong = outside(walls)
        found = to_instant(table, begin(walls))
        return found if wrong is None else np.where(wrong, walls, found)

    return _in_zone(arguments[1], arguments[2], begun)


def _in_zone(instants: Vector, zones: Vector, moved: Moved) -> Vector:
    zones = compact(zones)
    assert zones.dictionary is not None
    names = [str(name) for name in zones.dictionary.to_pylist()]
    if len(zones.values) == 1 and names:
        table = zone_named(names[int(zones.values[0])])
        unknown = np.array([table is None])
        values = instants.values if table is None else moved(table, instants.values)
    else:
        rows = height([instants, zones])
        ms, codes = spread(instants.values, rows), spread(zones.values, rows)
        values, unknown = np.zeros(rows, np.int64), np.ones(rows, np.bool_)
        for code, name in enumerate(names):
            table = zone_named(name)
            if table is not None:
                of = np.flatnonzero(codes == code)
                values[of], unknown[of] = moved(table, ms[of]), False
    error = either(outside(values), unknown if unknown.any() else None)
    return strict([instants, zones], TIMESTAMP, values, error)
