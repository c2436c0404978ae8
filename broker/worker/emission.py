"""What a shard's queries emit: the changes of a step as records for their topics.

Changes of many queries with the same columns come as one object and are written as one, wherever they go to
the same topic in the same form. Which queries emit is derived from what stands; nothing of it is kept.

What cannot be written breaks the queries whose output it is, and none else: they are named, to go.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from broker.worker.counts import Counts
from engine.engine import Engine
from engine.model.changes import Changes
from engine.model.step import Body, Register, StepResult, Unregister
from engine.results.view import View
from topics.outputs import AWAITED, Outputs, destination, emits
from topics.results import Destination, Records, RowsTooLarge, parts
from tureen.errors import ChangesBroken, TureenError
from tureen.protocol import TopicNames


class _Broken(Exception):
    """These cannot be told."""

    def __init__(self, query_ids: Iterable[str], reason: TureenError) -> None:
        self.query_ids = tuple(query_ids)
        self.reason = reason
        super().__init__(reason.message)


class Emission:
    """Used by the shard's thread alone; ``broken`` may be read by others."""

    def __init__(self, names: TopicNames, outputs: Outputs, counts: Counts) -> None:
        self._names = names
        self._outputs = outputs
        self._counts = counts
        self.broken: Mapping[str, ChangesBroken] = {}
        """Queries that went since their changes could not be told, and why; never changed in place."""
        self._to: dict[str, Destination] = {}

    def came(self, view: View, queries: Iterable[tuple[str, str]]) -> None:
        """Queries, by their ids and texts, stand: those of them that emit do so from now on."""
        for query_id, sql in queries:
            output = view.output(query_id) if emits(sql) else None
            to = None if output is None else destination(self._names, output)
            if to is not None:
                self._to[query_id] = to

    def stepped(self, body: Body, result: StepResult, engine: Engine) -> None:
        """Know of the queries that a step brought."""
        if not isinstance(body, Register):
            return
        if self.broken:
            coming = {one.query_id for one in body.registrations}
            self.broken = {name: told for name, told in self.broken.items() if name not in coming}
        if any(emits(one.sql) for one in body.registrations):
            stand = (one for one in body.registrations if one.query_id not in result.failed)
            self.came(engine.view(), ((one.query_id, one.sql) for one in stand))

    def records(self, body: Body, result: StepResult) -> tuple[list[Records], tuple[str, ...]]:
        """The records of a step, and the queries whose changes cannot be told whole: they emit no more.

        Raises KafkaUnavailable, RegistryUnavailable; what was asked for is then to be asked for again.
        """
        broken = {name: error for name, error in result.broken.items() if name in self._to}
        found: list[Records] | None = None
        while found is None:
            try:
                found = self._records(result, broken) if result.changes else []
            except _Broken as more:
                broken |= dict.fromkeys(more.query_ids, more.reason)
        for query_id in body.query_ids if isinstance(body, Unregister) else ():
            self._to.pop(query_id, None)
            broken.pop(query_id, None)
        return found, self._break(broken)

    def refused(self, topics: Mapping[str, TureenError]) -> tuple[str, ...]:
        """Those who write to these topics, which refuse it: they emit no more."""
        return self._break({name: topics[to.topic] for name, to in self._to.items() if to.topic in topics})

    def _break(self, reasons: Mapping[str, Exception]) -> tuple[str, ...]:
        told = {}
        for query_id, reason in reasons.items():
            self._to.pop(query_id, None)
            text, cure = getattr(reason, "message", repr(reason)), getattr(reason, "hint", None)
            told[query_id] = ChangesBroken(text, cure)
        if told:
            self.broken = {**self.broken, **told}
        return tuple(told)

    def _records(self, result: StepResult, broken: Mapping[str, Exception]) -> list[Records]:
        numbered: dict[str, int] = {}
        found: list[Records] = []
        counted: list[tuple[Destination, int]] = []
        for changes in result.changes:
            for to, mine in parts(changes, self._to, broken):
                records = self._encoded(mine, to, result, numbered)
                if len(records):
                    found.append(records)
                    counted.append((to, len(mine)))
        for (to, deltas), records in zip(counted, found, strict=True):
            counts = self._counts
            counts.deltas[to.topic, to.operator] += deltas
            counts.result_records[to.topic, to.operator] += len(records)
            counts.result_bytes[to.topic, to.operator] += records.size
        return found

    def _encoded(
        self, changes: Changes, to: Destination, result: StepResult, numbered: dict[str, int]
    ) -> Records:
        """Raises _Broken, KafkaUnavailable, RegistryUnavailable."""
        try:
            return self._outputs.encoded(changes, to, result.position, numbered)
        except AWAITED:
            raise
        except RowsTooLarge as large:
            raise _Broken(large.query_ids, large) from large
        except TureenError as refused:
            raise _Broken(changes.query_ids, refused) from refused
