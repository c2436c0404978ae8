"""When a row of one input of a join can have no partner any more, by the constraints of streams (S. Babu,
U. Srivastava, J. Widom, TODS 2004; STREAM, section 4).

Places are those of columns in the rows of a stream.
"""

from __future__ import annotations

from dataclasses import dataclass

from engine.model.source import SourceName


@dataclass(frozen=True, slots=True)
class ClosedKeys:
    """The other input's stream is clustered by the join's keys: a row goes when its key is over there.

    places: of each key. names: of these columns.
    """

    source: SourceName
    places: tuple[int, ...]
    names: tuple[str, ...]
    within_rows: int

    def __str__(self) -> str:
        return f"its ({', '.join(self.names)}) is over in {self.source} (clustered)"


@dataclass(frozen=True, slots=True)
class Below:
    """The other input's stream is ordered by a key of the join: a row goes when its key is below all that is
    to come there. key: which of the join's.
    """

    source: SourceName
    place: int
    name: str
    within_rows: int
    key: int

    def __str__(self) -> str:
        return f"it is below every {self.name} of {self.source} to come (ordered)"


@dataclass(frozen=True, slots=True)
class Awaited:
    """The one partner is there when a row comes, or comes among so many rows of its stream, or so many ms
    later: a row that waits for longer goes. Exactly one of the two is given.
    """

    source: SourceName
    within_rows: int | None
    within_ms: int | None

    def __str__(self) -> str:
        rows = self.within_rows
        if rows == 0:
            return "it has no partner when it comes (references)"
        wait = f"{self.within_ms} ms" if rows is None else f"{rows} rows of {self.source}"
        return f"it has no partner after {wait} (references)"


@dataclass(frozen=True, slots=True)
class Release:
    """What lets rows of one input of a join go. once: a row has one partner at most, and goes with it."""

    over: ClosedKeys | None = None
    below: tuple[Below, ...] = ()
    once: bool = False
    awaited: Awaited | None = None

    def __bool__(self) -> bool:
        """Whether rows go at all."""
        return self.once or self.over is not None or bool(self.below)

    def lines(self) -> tuple[str, ...]:
        """When a row goes, for people to read."""
        reasons = ["it has met its one partner (unique)"] if self.once else []
        reasons += [str(each) for each in (self.awaited, self.over, *self.below) if each is not None]
        return tuple(reasons)


@dataclass(frozen=True, slots=True)
class Final:
    """When a group of a stream's rows gets no row any more. over_keys: which of the group's keys are the
    columns that the stream is clustered by.
    """

    source: SourceName
    over: ClosedKeys | None
    over_keys: tuple[int, ...]
    below: tuple[Below, ...]

    def lines(self) -> tuple[str, ...]:
        """When a group goes, for people to read."""
        return tuple(str(each) for each in (self.over, *self.below) if each is not None)


KEPT = Release()
"""Rows stay."""


@dataclass(frozen=True, slots=True)
class Early:
    """What lets rows of a join go before their windows leave them: rows without a partner, of inputs of which
    these are not given. left, right: KEPT where rows stay. entered: of each input, the streams whose ordinals
    the words of its ids are. paired: rows with partners go too, since nobody sees pairs end.
    """

    left: Release
    right: Release
    entered: tuple[tuple[SourceName, ...], tuple[SourceName, ...]]
    paired: bool

    def lines(self) -> tuple[str, ...]:
        """When rows go, for people to read."""
        which = "" if self.paired else " without a partner"
        return tuple(
            f"a {side} row{which} goes before it leaves its window when {reason}"
            for side, release in (("left", self.left), ("right", self.right))
            for reason in release.lines()
        )


Releases = tuple[Release, Release]
"""The releases of the left and of the right input of a join."""
NONE: Releases = (KEPT, KEPT)
