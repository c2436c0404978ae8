"""What a shard's queries emit: the changes of a step as records for their topics.

Changes of many queries with the same columns come as one object and are written as one, wherever they go to
the same topic in the same form. Which queries emit is derived from what stands; nothing of it is kept.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping

from broker.settings import Settings
from broker.worker.metrics import Counts
from broker.worker.outputs import Outputs, destination
from engine.model.changes import Changes
from engine.model.step import StepResult
from engine.results.view import View
from topics.results import Destination, Records, RowsTooLarge, encode, part
from tureen.errors import TureenError


class Emission:
    """Used by the shard's thread alone."""

    def __init__(self, settings: Settings, outputs: Outputs, counts: Counts) -> None:
        self._settings = settings
        self._outputs = outputs
        self._counts = counts
        self._to: dict[str, Destination] = {}

    def __contains__(self, query_id: str) -> bool:
        return query_id in self._to

    def came(self, view: View, query_ids: Iterable[str]) -> None:
        """Queries stand: those of them that emit do so from now on."""
        for query_id in query_ids:
            output = view.output(query_id)
            if output.emit is not None:
                names = self._settings.names
                self._to[query_id] = destination(names, output.emit, output.operator, output.key)

    def went(self, query_ids: Iterable[str]) -> None:
        """Queries are gone, or emit no more."""
        for query_id in query_ids:
            self._to.pop(query_id, None)

    def records(self, result: StepResult) -> tuple[list[Records], Mapping[str, TureenError]]:
        """The records of a step, and the queries that have one that is too large: they have none here.

        Raises KafkaUnavailable, RegistryUnavailable; what was asked for is then to be asked for again.
        """
        refused: dict[str, TureenError] = {}
        while True:
            try:
                return self._records(result, refused), refused
            except RowsTooLarge as large:
                refused |= dict.fromkeys(large.query_ids, large)

    def _records(self, result: StepResult, refused: Mapping[str, TureenError]) -> list[Records]:
        numbered: dict[str, int] = {}
        found: list[Records] = []
        counted: list[tuple[Destination, int]] = []
        for changes in result.changes:
            for to, places in self._by_destination(changes, refused).items():
                mine = part(changes, places)
                writer = self._outputs.writer(to, mine.table.schema)
                records = encode(
                    mine,
                    to,
                    result.position,
                    writer.codec,
                    numbered=numbered,
                    partitions=writer.partitions,
                    bytes_max=self._settings.result_record_bytes_max,
                )
                if len(records):
                    found.append(records)
                    counted.append((to, len(mine)))
        for (to, deltas), records in zip(counted, found, strict=True):
            counts = self._counts
            counts.deltas[to.topic, to.operator] += deltas
            counts.result_records[to.topic, to.operator] += len(records)
            counts.result_bytes[to.topic, to.operator] += records.size
        return found

    def _by_destination(
        self, changes: Changes, refused: Mapping[str, TureenError]
    ) -> dict[Destination, list[int]]:
        places: dict[Destination, list[int]] = defaultdict(list)
        for place, query_id in enumerate(changes.query_ids):
            to = self._to.get(query_id)
            if to is not None and query_id not in refused:
                places[to].append(place)
        return places
