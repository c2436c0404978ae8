"""A window over the changes of a subquery: ISTREAM, DSTREAM and RSTREAM."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from engine.algebra.operator import Operator
from engine.model.sample import Sample
from engine.windows.clauses import RowWindow, Window

StreamOperator = Literal["istream", "dstream", "rstream"]


@dataclass(frozen=True, slots=True)
class Streamed(Operator):
    """FROM ISTREAM(SELECT ...) [window]: the relation of the stages below as a stream, and of its elements
    those that a window holds.

    R(t) is what the stages below give at the instant t, over the rows of the sources that are known now. The
    elements of ``istream`` at t are R(t) - R(t - 1), those of ``dstream`` R(t - 1) - R(t), as bags of rows
    that are the same to the bit; of equal rows the last ones, in the order of R(t), of R(t - 1). Those of
    ``rstream`` are R(t) at each instant at which a row of one of the scans comes or goes. Elements are in the
    order of their instants, then of the relation; that is the order in which a window counts them.

    window: over the elements, which have the columns of the relation. sample: which of them there are at all,
    by keys that are made of their values and instant (:mod:`engine.changes.element_keys`).
    """

    replaces_missing: ClassVar[bool] = True

    operator: StreamOperator
    window: Window
    sample: Sample | None = None

    @property
    def stream(self) -> Streamed:
        return self

    @property
    def places_read(self) -> None:
        return None

    @property
    def reach_ms(self) -> int | None:
        """How long before NOW the stages below are looked at, None: from the first row on."""
        reach_ms = None if isinstance(self.window, RowWindow) else self.window.reach_ms
        return None if reach_ms is None else reach_ms + 1
