"""Changes of answers as records of result topics, the same that the broker writes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from engine.model.changes import Changes
from engine.model.step import Position
from spark_jobs.scale_out.writers import WriterJob
from topics.admin import Admin
from topics.destination import Destination
from topics.outputs import AWAITED, Outputs
from topics.results import Records, RowsTooLarge, part, parts
from tureen.errors import ChangesBroken, TureenError

_known: dict[tuple[str, str], Outputs] = {}


def outputs_of(job: WriterJob) -> Outputs:
    """The result topics as this process knows them."""
    key = job.kafka["bootstrap.servers"], job.service_id
    if key not in _known:
        _known[key] = Outputs(job.outputs, Admin(job.kafka))
    return _known[key]


@dataclass(slots=True)
class Encoder:
    """Makes the records of one writer's part of a micro-batch.

    numbered: how many changes each query had so far; kept up. broken: queries whose changes cannot be told,
    and why; nothing more of theirs is.
    """

    job: WriterJob
    position: Position
    to: Mapping[str, Destination]
    numbered: dict[str, int] = field(default_factory=dict)
    broken: dict[str, dict[str, Any]] = field(default_factory=dict)

    def encode(self, told: Iterable[Changes]) -> list[Records]:
        """Records of changes, in order. Raises KafkaUnavailable, RegistryUnavailable."""
        found: list[Records] = []
        for changes in told:
            for to, mine in parts(changes, self.to, self.broken):
                found += self._encoded(mine, to)
        return found

    def _encoded(self, changes: Changes, to: Destination) -> list[Records]:
        while changes.query_ids:
            try:
                records = outputs_of(self.job).encoded(changes, to, self.position, self.numbered)
            except AWAITED:
                raise
            except TureenError as refused:
                whose = refused.query_ids if isinstance(refused, RowsTooLarge) else changes.query_ids
                self.give_up(whose, refused)
                kept = [n for n, one in enumerate(changes.query_ids) if one not in self.broken]
                changes = part(changes, kept)
            else:
                return [records] if len(records) else []
        return []

    def give_up(self, query_ids: Iterable[str], reason: TureenError) -> None:
        """Tell no more of these."""
        told = ChangesBroken(reason.message, reason.hint).as_dict()
        self.broken |= dict.fromkeys(query_ids, told)
