"""The answer of a followed query as it was told last, kept while the query is paused.

Whoever follows a paused query is told nothing until it runs again, and then what differs from this answer.
It is kept as Arrow's stream format with lz4, as the store has it too: nobody reads it in the meantime.
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

_OPTIONS = pa.ipc.IpcWriteOptions(compression="lz4")


@dataclass(frozen=True, slots=True)
class LastAnswer:
    """now_ms: NOW of the query then; None before it had one. rows: a stream of Arrow; None: there were more
    rows than can be told at once.
    """

    now_ms: int | None
    rows: bytes | None

    @classmethod
    def of(cls, table: pa.Table, now_ms: int | None) -> LastAnswer:
        """O(rows)."""
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, table.schema, options=_OPTIONS) as writer:
            writer.write_table(table)
        return cls(now_ms, sink.getvalue().to_pybytes())

    def table(self) -> pa.Table | None:
        """The rows; None where they were not kept. O(rows)."""
        return None if self.rows is None else pa.ipc.open_stream(self.rows).read_all()

    @property
    def nbytes(self) -> int:
        return 0 if self.rows is None else len(self.rows)
