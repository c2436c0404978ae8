"""How many rows of a stream broke each of its constraints, since when, and which queries lack them."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from engine.model.approximation import Approximation
from engine.model.constraint import References, text_of
from engine.model.persistence import PromiseState
from engine.model.source import SourceName, Stream
from engine.model.step import Position


class ConstraintViolations:
    """One owner."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self.broken = [0] * len(stream.constraints)
        """By constraint, rows that broke it."""
        self.told = [0] * len(stream.constraints)
        """By constraint, how many of the rows that broke it tags tell: a new amount for each tenth more."""
        self.since: Position | None = None
        """The position with which a constraint was first broken."""
        self.withheld_ms: int | None = None
        """The instant of the last row that did not enter."""
        self.touched: set[str] = set()
        """Queries that lack such a row, or may."""

    def note(self, numbers: Sequence[int], position: Position) -> tuple[str, ...]:
        """Rows broke the constraints with these numbers; returns why, a text each."""
        for number in numbers:
            self.broken[number] += 1
        if self.since is None:
            self.since = position
        texts = [f"the row breaks {text_of(one)}" for one in self._stream.constraints]
        return tuple(texts[number] for number in numbers)

    def is_to_tell(self) -> bool:
        """Whether tags are to have another amount, which they have from now on. It depends on how many rows
        broke a promise alone.
        """
        before = self.told.copy()
        for number, broken in enumerate(self.broken):
            while self.told[number] + max(1, self.told[number] // 10) <= broken:
                self.told[number] += max(1, self.told[number] // 10)
        return self.told != before

    def stands(self, query_id: str, retained_from_ms: int | None) -> None:
        """A query came. It may lack a row that was withheld, if those of its instant are retained."""
        if self.withheld_ms is not None and self.withheld_ms >= (retained_from_ms or self.withheld_ms):
            self.touched.add(query_id)

    def tags(self, query_id: str, sources: Collection[SourceName]) -> Iterator[Approximation]:
        """What the answer of a query over some sources lacks: rows of this one that were withheld, and pairs
        of rows of two of them.
        """
        name, pairs = self._stream.name, list[tuple[int, SourceName]]()
        withheld = 0
        for told, one in zip(self.told, self._stream.constraints, strict=True):
            if not isinstance(one, References):
                withheld += told
            elif told and one.target in sources:
                pairs.append((told, one.target))
        if withheld and query_id in self.touched:
            yield Approximation("constraint", name, "dynamic", withheld, "rows", since=self.since)
        for told, target in pairs:
            where = f"{name} REFERENCES {target}"
            yield Approximation("constraint", where, "dynamic", told, "rows", since=self.since)

    def restore(self, saved: PromiseState) -> None:
        """As saved."""
        self.since, self.withheld_ms, self.touched = saved.since, saved.withheld_ms, set(saved.touched)
        self.broken = [one.broken for one in saved.constraints]
        self.is_to_tell()
