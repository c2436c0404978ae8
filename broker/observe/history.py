"""The last hour of the broker, of its sources and of its entities, in memory of a fixed size.

    of                               one value per   at most            memory at most
    the broker                       5 s             64 series          0.2 MB
    a source                         5 s             200 sources        2.9 MB
    an entity that is no query       10 s            1,000 entities     15.8 MB

It begins anew with each life of the worker. What was not noted, since the worker had not begun, the machine
slept or a shard did not answer, is null.

Noted on the event loop. A value of a quantity that is counted is a rate over its interval.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from broker.observe.curves import Curves
from broker.observe.entity_reading import EntityReading, part_id
from broker.observe.source_lines import SOURCES_MAX
from engine.model.attributes import Attribute
from engine.queries.entities import EntityPart, MeasuredUsage
from tureen.errors import UnknownEntity, UnknownSource

HOUR_MS = 3_600_000
EVERY_MS = 5_000
ENTITIES_EVERY_MS = 10_000
SERIES_MAX = 64
ENTITIES_MAX = 1_000
ATTRIBUTES_MAX = 8
"""Most attributes of an entity that are kept: the first of those that can be set."""

OF_SOURCE = {
    "records_per_s": "records/s",
    "late_per_s": "rows/s",
    "dead_letters_per_s": "records/s",
    "lag_ms": "ms",
    "shedding_share": "share",
}
"""What is kept of a source, with its unit."""

Values = Mapping[str, tuple[float | None, str]]


class MeasuredHistory:
    """What is kept. Used by the event loop alone."""

    def __init__(self) -> None:
        self._broker = _curves(EVERY_MS)
        self._sources: dict[str, Curves] = {}
        self._entities: dict[str, Curves] = {}
        self._left_out = 0
        self._before: dict[str, MeasuredUsage] = {}
        self._before_s = 0.0

    # --- what happens -----------------------------------------------------------------------------

    def note_broker(self, at_ms: int, values: Values) -> None:
        """Note values of the broker; the first SERIES_MAX series."""
        self._broker.note(at_ms, dict(list(values.items())[:SERIES_MAX]))

    def note_sources(self, at_ms: int, lines: Sequence[Mapping[str, Any]]) -> None:
        """Note values of the first sources. lines: as :func:`broker.observe.source_lines.source_lines` has
        them.
        """
        for gone in self._sources.keys() - {one["name"] for one in lines}:
            del self._sources[gone]
        for one in lines:
            curves = self._sources.get(one["name"])
            if curves is None:
                curves = self._sources[one["name"]] = _curves(EVERY_MS)
            curves.note(at_ms, {name: (one[name], unit) for name, unit in OF_SOURCE.items()})

    def note_entities(self, at_ms: int, reading: EntityReading) -> None:
        """Note values of entities that are no queries. O(these entities)."""
        parts = {
            part_id(number, part.id): part
            for number, report in reading.reports.items()
            for part in report.parts
        }
        for gone in self._entities.keys() - parts.keys():
            del self._entities[gone]
        elapsed_s = reading.at_s - self._before_s if self._before_s else 0.0
        self._left_out = 0
        for id_, part in parts.items():
            curves = self._entities.get(id_)
            if curves is None:
                if len(self._entities) >= ENTITIES_MAX:
                    self._left_out += 1
                    continue
                curves = self._entities[id_] = _curves(ENTITIES_EVERY_MS)
            curves.note(at_ms, _values(part, self._before.get(id_), elapsed_s))
        self._before = {id_: parts[id_].usage for id_ in self._entities}
        self._before_s = reading.at_s

    # --- what is told -----------------------------------------------------------------------------

    def of_broker(self, since_ms: int | None) -> dict[str, Any]:
        """As :meth:`broker.observe.curves.Curves.told` has it."""
        return self._broker.told(since_ms)

    def of_source(self, name: str, since_ms: int | None, *, stands: bool = False) -> dict[str, Any]:
        """The history of one of the first sources. stands: it is a stream or a table, so where there is room
        it has only just come, and has no instant yet. Raises UnknownSource: there is none, or it is none of
        the first.
        """
        curves = self._sources.get(name)
        if curves is None and stands and len(self._sources) < SOURCES_MAX:
            return _curves(EVERY_MS).told(since_ms)
        if curves is None:
            hint = f"the history of the first {SOURCES_MAX} streams and tables, by name, is kept"
            raise UnknownSource(name, hint=hint)
        return curves.told(since_ms)

    def keeps(self, id_: str) -> bool:
        """Whether there is a history of an entity."""
        return id_ in self._entities

    def of_entity(self, id_: str, since_ms: int | None, *, stands: bool = False) -> dict[str, Any]:
        """stands: it is there and no query: where none is left out it has only just come, and has no instant
        yet. Raises UnknownEntity: there is none, or it is not kept.
        """
        curves = self._entities.get(id_)
        if curves is None and stands and not self._left_out:
            return _curves(ENTITIES_EVERY_MS).told(since_ms)
        if curves is None:
            kept = f"the history of {ENTITIES_MAX:,} entities that are no queries is kept"
            left_out = f"; {self._left_out:,} more are left out" if self._left_out else ""
            raise UnknownEntity(id_, hint=kept + left_out)
        return curves.told(since_ms)

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays."""
        of_each = (*self._sources.values(), *self._entities.values())
        return self._broker.nbytes + sum(curves.nbytes for curves in of_each)


def _curves(every_ms: int) -> Curves:
    return Curves(every_ms, HOUR_MS // every_ms)


def _values(
    part: EntityPart, before: MeasuredUsage | None, elapsed_s: float
) -> dict[str, tuple[float | None, str]]:
    """Rates since the reading before, what it holds, and what of it can be set."""
    usage, was = part.usage, before

    def per_s(name: str) -> float | None:
        if was is None or elapsed_s <= 0:
            return None
        return float(max(0, getattr(usage, name) - getattr(was, name))) / elapsed_s

    cpu_ns_per_s = per_s("cpu_ns")
    settable = [one for one in part.attributes if one.settable and _is_number(one)][:ATTRIBUTES_MAX]
    return {
        "rows_in_per_s": (per_s("rows_in"), "rows/s"),
        "memory_bytes": (float(part.nbytes), "bytes"),
        "cpu_share": (None if cpu_ns_per_s is None else cpu_ns_per_s / 1e9, "share"),
    } | {one.name: (_number(one), one.measured_in or "") for one in settable}


def _is_number(attribute: Attribute) -> bool:
    return attribute.type in ("integer", "number")


def _number(attribute: Attribute) -> float | None:
    value = attribute.value
    return float(value) if isinstance(value, int | float) else None
