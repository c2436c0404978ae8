"""The strings of a stream: each STRING column's in one table, by whose codes all its segments hold it.

So a string is looked for once, when its row comes, and whatever is known of it is known by its code. Tables
are only added to. When one has grown large, or most of what it holds can have no row any more, segments that
are begun from then on have a new one: a *generation*. The former goes with the last segment that has it.
"""

from __future__ import annotations

from collections.abc import Sequence

from engine.model.batch import Batch, Column
from engine.model.capacities import USUAL, Capacities
from engine.model.source import Schema
from engine.model.string_table import ARROW_BYTES_MAX, StringTable
from engine.model.types import Kind

GENERATION_STRINGS = 1 << 20
SMALL_STRINGS = 1 << 17
"""A table with fewer is kept, whatever of it is dead."""
STRINGS_A_ROW = 8
"""A table with so many times as many strings as there are rows is mostly dead."""

Tables = tuple[StringTable | None, ...]
"""One for each column; None: its type is another."""


class StreamStrings:
    """The tables of the newest generation. One writer."""

    def __init__(self, schema: Schema, capacities: Capacities = USUAL) -> None:
        self._capacities = capacities
        self.tables: Tables = tuple(
            StringTable(capacities) if f.type.kind is Kind.STRING else None for f in schema
        )
        self._any = any(table is not None for table in self.tables)

    def coded(self, rows: Batch) -> Batch:
        """The rows by the tables' codes; new strings are taken in. O(rows + bytes), O(1) where they are."""
        if not self._any or all(map(_is_coded, self.tables, rows.columns)):
            return rows
        self.make_room([rows])
        columns = tuple(
            column if table is None else column.coded(table)
            for column, table in zip(rows.columns, self.tables, strict=True)
        )
        return Batch(rows.schema, columns, rows.partition, rows.offset, rows.timestamp)

    def make_room(self, batches: Sequence[Batch]) -> None:
        """Tables that may have no room for the strings of some rows give way."""
        for place, table in enumerate(self.tables):
            if table is not None:
                more = sum(_more_bytes(table, rows.columns[place]) for rows in batches)
                if table.used_bytes + more > ARROW_BYTES_MAX:
                    self._renew([place])

    def let_go(self, rows: int) -> None:
        """A segment begins: tables that are large, or mostly dead, give way. rows: that are retained."""
        most = self._capacities.strings_bytes
        tables = enumerate(self.tables)
        self._renew([place for place, table in tables if table is not None and _is_due(table, rows, most)])

    def clear(self) -> None:
        """No row has any of the strings."""
        self._renew(range(len(self.tables)))

    def _renew(self, places: Sequence[int]) -> None:
        if places:
            self.tables = tuple(
                StringTable(self._capacities) if table is not None and place in places else table
                for place, table in enumerate(self.tables)
            )


def _is_coded(table: StringTable | None, column: Column) -> bool:
    return table is None or column.strings is table


def _more_bytes(table: StringTable, column: Column) -> int:
    """Bytes that a table takes for a column's strings, at most."""
    strings = column.strings
    if strings is table or strings is None:
        return 0
    return strings.used_bytes if isinstance(strings, StringTable) else int(strings.nbytes)


def _is_due(table: StringTable, rows: int, bytes_max: int) -> bool:
    strings = len(table)
    if strings > GENERATION_STRINGS or table.used_bytes > bytes_max:
        return True
    return strings > SMALL_STRINGS and strings > STRINGS_A_ROW * rows
