"""``GET /queries/{handle}/difference``: which rows of an answer came and went between two instants, as bags.

Both answers are those of ``at=`` over the rows as known now, of one view, so that they belong together. They
are computed and compared in threads, over columns; only the rows that are sent are made text of.
Cost: both answers, and O(rows of both) to hash them.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
import orjson
import pyarrow as pa

from broker.archive.answers import ArchiveAnswer
from broker.base.settings import Settings
from broker.http.answers import Snapshots
from broker.http.asking import asked
from broker.http.errors import BadRequest
from broker.http.formats import catching_up_dicts, columns_json, rows_json, tag_dicts
from broker.http.requests import instant_ms
from broker.node.node import Node
from engine.changes.difference import difference
from engine.model.answer import Answer, AnswerColumns
from engine.views.view import View
from tureen.errors import InstantOutOfRange, LimitExceeded, NotArchived

ROWS_DEFAULT = 1_000
ROWS_MAX = 10_000


@dataclass(frozen=True, slots=True)
class DifferenceRequest:
    """from_ms, to_ms: instants, ms since 1970; to_ms None: NOW of the query. archive: as of snapshots.
    rows: of those that came and of those that went, so many are told at most.
    """

    from_ms: int
    to_ms: int | None
    archive: bool | None
    rows: int

    @classmethod
    def of(cls, from_: str, to: str | None, archive: bool | None, rows: int) -> DifferenceRequest:
        """Raises BadRequest."""
        from_ms, to_ms = instant_ms(from_, "from"), instant_ms(to, "to")
        assert from_ms is not None
        if to_ms is not None and to_ms < from_ms:
            raise BadRequest("to is an instant before from", hint="the earlier of the two is from")
        return cls(from_ms, to_ms, archive, rows)


class Differences:
    """Compares answers of one query."""

    def __init__(self, settings: Settings, node: Node, snapshots: Snapshots) -> None:
        self._settings = settings
        self._node = node
        self._snapshots = snapshots

    async def between(self, name: str, wanted: DifferenceRequest) -> bytes:
        """What came and what went, as JSON.

        Raises what :meth:`broker.http.answers.Snapshots.take` raises of either instant.
        """
        self._snapshots.require_for(wanted.archive)

        async def found(number: int) -> bytes:
            view = await self._snapshots.view_over(number, name, wanted.from_ms, wanted.to_ms)
            to_ms = view.now_ms(name) if wanted.to_ms is None else wanted.to_ms
            if to_ms is not None and to_ms < wanted.from_ms:
                raise InstantOutOfRange(wanted.from_ms, None, to_ms)
            before = await self._answer(view, name, wanted.from_ms, wanted.archive)
            after = await self._answer(view, name, wanted.to_ms, wanted.archive)
            work = partial(self._compared, before, after, wanted)
            return await self._snapshots.pool.do(work)

        return await asked(self._node, name, self._settings.outcome_wait_ms / 1_000, found)

    async def _answer(self, view: View, name: str, at_ms: int | None, archive: bool | None) -> ArchiveAnswer:
        """Answer a query at one instant. Rows of the archive are used where ``archive`` says so, or where
        memory does not reach that instant.
        """
        rows_max, archive_answers = self._settings.snapshot_rows_max, self._snapshots.archive_answers
        if archive:
            assert archive_answers is not None
            return await archive_answers.within(partial(archive_answers.answer, view, name, at_ms, rows_max))
        try:
            work = partial(view.snapshot, name, at_ms, rows_max=rows_max)
            answer = await self._snapshots.pool.do(work)
            return ArchiveAnswer(answer, 0, None)
        except InstantOutOfRange as refused:
            if archive is False or archive_answers is None or refused.at_ms > refused.latest_ms:
                raise
            try:
                return await archive_answers.within(
                    partial(archive_answers.answer, view, name, at_ms, rows_max)
                )
            except NotArchived:
                raise refused from None

    def _compared(self, one: ArchiveAnswer, other: ArchiveAnswer, wanted: DifferenceRequest) -> bytes:
        before, after = one.answer, other.answer
        with self._node.setup.memory.accounts.answering(before.rows.nbytes + after.rows.nbytes):
            rows, weights, _ = difference(before.table, after.table)
            went = int(np.count_nonzero(weights < 0))
            told = {
                "query_id": after.query_id,
                "position": str(after.position),
                "from_ms": wanted.from_ms,
                "to_ms": after.now_ms,
                "complete": before.complete and after.complete,
                "complete_from_ms": _latest(before, after),
                "catching_up": catching_up_dicts(after.catching_up),
                "approximation": tag_dicts(after.approximation),
                "archive_rows": one.rows + other.rows,
                "added_total": len(weights) - went,
                "removed_total": went,
            }
            added, removed = rows.slice(went, wanted.rows), rows.slice(0, min(went, wanted.rows))
            data = b'%b,"columns":%b,"added":%b,"removed":%b}' % (
                orjson.dumps(told)[:-1],
                columns_json(rows.schema),
                _rows(added),
                _rows(removed),
            )
        allowed = self._settings.snapshot_bytes_max
        if len(data) > allowed:
            raise LimitExceeded("snapshot_bytes_max", allowed, len(data), hint="ask for fewer rows by limit")
        return data


def _latest(*answers: Answer) -> int | None:
    """From when on both answers are complete; None: they are complete."""
    return max((one.complete_from_ms for one in answers if one.complete_from_ms is not None), default=None)


def _rows(table: pa.Table) -> bytes:
    return rows_json(AnswerColumns.of_table(table))
