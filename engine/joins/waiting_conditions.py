"""The conditions that rows of a set of sources meet once a join found partners of theirs.

A query lets those of its conditions wait that are of an input of the join that it shares, where that is an
inner one and the query asks for nothing else of them: its answer is worked out when it is asked for, and
nobody is told of changes. :mod:`engine.stems.postponed` has the rows that wait.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from engine.joins.group import JoinGroup
from engine.joins.query_marks import Wants
from engine.joins.shape import Shape
from engine.model.source import SourceName
from engine.stems.postponed import PostponedMatches
from engine.stems.postponing import Postponing


@dataclass(frozen=True, slots=True)
class PostponingSource:
    """What a stream knows of conditions that wait, and which rows of it do."""

    postponing: Postponing
    rows: PostponedMatches


class WaitingConditions:
    """One owner, as the joins. sources: streams, by name; rows of tables do not wait."""

    def __init__(self, sources: Mapping[SourceName, PostponingSource]) -> None:
        self._sources = sources
        self._held: dict[str, tuple[JoinGroup, tuple[tuple[SourceName, int], ...]]] = {}

    def hold(self, query_id: str, group: JoinGroup, wants: Wants) -> None:
        """A query lets its conditions wait. wants: the slot of its predicate by input."""
        slots = tuple(
            (source, slot)
            for source, slot in zip(group.shape.inputs, wants, strict=True)
            if slot is not None and source in self._sources
        )
        for source, slot in slots:
            self._sources[source].postponing.hold(slot, group.placing)
        self._held[query_id] = group, slots

    def release(self, query_id: str) -> None:
        """It does so no more; passed over where it did not."""
        group, slots = self._held.pop(query_id, (None, ()))
        if group is not None:
            for source, slot in slots:
                self._sources[source].postponing.release(slot, group.placing)

    def look_out(self, group: JoinGroup) -> None:
        """A step of a join begins: it notes rows that have partners, of inputs whose rows wait."""
        group.placing.look_out(
            [place for place, source in enumerate(group.shape.inputs) if self._wait(source)]
        )

    def meet(self, group: JoinGroup) -> None:
        """The step is over: rows that have partners meet what they waited for; all do where the join finds
        nothing any more.
        """
        met = group.placing.met()
        if not group.placing.finds:
            self.settle(group.shape)
            return
        for place, ordinals in met:
            self._sources[group.shape.inputs[place]].rows.meet(ordinals, group.placing)

    def settle(self, shape: Shape) -> None:
        """Rows of its inputs wait no more."""
        for source in set(shape.inputs):
            if self._wait(source):
                self._sources[source].rows.settle()

    def _wait(self, source: SourceName) -> bool:
        return source in self._sources and bool(self._sources[source].rows)

    def _check(self, groups: Iterable[JoinGroup]) -> None:
        """No row that waits is part of a combination that a join found."""
        for group in groups:
            kept = group.view().kept
            for place, source in enumerate(group.shape.inputs):
                if kept is not None and self._wait(source):
                    waiting = self._sources[source].rows._waiting(group.placing)
                    for parts, count, origin in kept.composites:
                        assert not np.isin(waiting, parts[:count, place] + origin[place]).any()
