"""Answers by handle: how one is taken, and the short way of a plain request for one.

An answer is computed in a bounded pool of threads, or at once by the event loop where it took little last
time, since two changes of thread cost more than a small answer; one that was not asked for yet, where that of
a text which differs in constants only took little. What it costs is measured each time, and one of many rows
is left to the pool in any case.

The short way: `GET /queries/{handle}/snapshot`, which clients send a thousand times a second, is answered
ahead of the application, whose routing and validation take longer than the answer; and what the event loop
computes, by the connection itself, whose protocol for applications takes as long again. A request that is not
of the plainest form goes on to the application, which understands it or says what is wrong with it.
"""

from __future__ import annotations

import re
import time
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple, cast

from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from broker.archive.answers import ArchiveAnswers
from broker.base.cursor import Birth, Cursor
from broker.base.settings import Settings
from broker.http import row_texts
from broker.http.asking import asked, brought_back, shard_of
from broker.http.errors import answer
from broker.http.formats import CONTENT_TYPES, AnswerForm, Reached, encode, with_fact
from broker.http.guard import Guard
from broker.http.handle_header import HEADER
from broker.http.named import opened
from broker.http.requests import instant_ms
from broker.memory.levels import Level
from broker.node.node import Node
from broker.node.request_work import RequestWork
from broker.observe.metrics import Metrics
from broker.shard.shard_command import ShardCommand
from engine.language.templates import Template
from engine.model.answer import Answer
from engine.model.period import At, Period
from engine.model.units import unit_of
from engine.views.view import View
from topics.approximation import header_text
from tureen.errors import (
    HistoryUnavailable,
    InstantOutOfRange,
    LimitExceeded,
    NotArchived,
    TureenError,
)
from tureen.protocol import SnapshotFormat

AT_ONCE_S = 0.004
"""An answer that took no longer than this is computed in the event loop. Ten times what a small one takes on
a quiet machine: were a busy one to send them to the pool, its threads would make it busier yet.
"""
AT_ONCE_ROWS = 1_000
KNOWN_MAX = 200_000
"""Queries and templates whose last answer's cost is known, at most; beyond that all costs are forgotten
together.
"""

_PATH = re.compile(r"/queries/([A-Za-z0-9_.~-]+)/snapshot")
_NOT_PLAIN = (b"content-length", b"transfer-encoding", b"expect", HEADER)
_QUERY = re.compile(
    r"(?:format=(json|ndjson|csv|arrow))?(?:(?:^|&)at=(-?\d{1,17}))?(?:(?:^|&)archive=(true|false))?"
)


@dataclass(frozen=True, slots=True)
class TakenAnswer:
    """An answer and its bytes, none in the form ``rows``.

    change_position: where its changes go on; None for an earlier instant or a period, and of one with rows of
    the archive. archive: what was read there; None: nothing was.
    """

    answer: Answer
    data: bytes
    change_position: str | None
    archive: Reached | None = None
    swapped_in_ms: float | None = None

    def swapped_in(self, ms: float, form: AnswerForm) -> TakenAnswer:
        """This one, which tells that its query was swapped out, and how long it took to come back."""
        rounded = round(ms, 3)
        data = with_fact(self.data, "swapped_in_ms", rounded) if form == "json" else self.data
        return replace(self, data=data, swapped_in_ms=rounded)


class Snapshots:
    """Answers in a format, for HTTP and for requests by topic."""

    def __init__(self, settings: Settings, node: Node, metrics: Metrics) -> None:
        self._settings = settings
        self._node = node
        self._metrics = metrics
        row_texts.prepare()
        self.pool = RequestWork(
            "snapshot",
            settings.http_threads,
            settings.http_connections_max,
            "answer_ms_max",
            settings.answer_ms_max,
            node.setup.memory.require_room,
        )
        """Threads that compute answers."""
        self._cost_s: dict[str | Template, float] = {}
        self.archive_answers = (
            None if node.setup.archive is None else ArchiveAnswers(settings, node.setup.archive)
        )

    def opened(self, handle: str) -> str:
        """The id of the query that a handle opens. Raises HandleNeeded."""
        return opened(self._node, handle)

    async def take(
        self,
        name: str,
        form: AnswerForm,
        at: At,
        archive: bool | None = None,
        first: int | None = None,
    ) -> TakenAnswer:
        """at: an instant or a period. archive: True completes the answer by archived rows, where it lacks
        any; None does so where it could not be given there otherwise; False never does. first: so many of its
        rows at most.

        Raises UnknownQuery, QueryNotRunning, QueryPaused, InstantOutOfRange, LimitExceeded,
        BrokerUnavailable, HistoryUnavailable, NotArchived, MemoryBudgetExceeded, and what the archive raises.
        """
        self.require_for(archive)

        async def found(number: int) -> TakenAnswer:
            view = await self._view(number, name, at)
            try:
                taken = await self._timed(view, number, name, form, at, first)
                if not archive or taken.answer.complete_from_ms is None:
                    return taken
                return await self._completed(view, name, form, at, first)
            except InstantOutOfRange as refused:
                now_ms = view.now_ms(name)
                if (
                    archive is False
                    or self.archive_answers is None
                    or now_ms is None
                    or refused.at_ms > now_ms
                ):
                    raise
                try:
                    return await self._completed(view, name, form, at, first)
                except NotArchived:
                    if archive:
                        raise
                    raise refused from None

        swapped_in_ms = await brought_back(self._node, name)
        taken = await asked(self._node, name, self._settings.outcome_wait_ms / 1_000, found)
        return taken if swapped_in_ms is None else taken.swapped_in(swapped_in_ms, form)

    def require_for(self, archive: bool | None) -> None:
        """Raise what refuses any answer now: MemoryBudgetExceeded; HistoryUnavailable: it is to be completed
        by an archive, and there is none.
        """
        self._require_memory()
        if archive and self.archive_answers is None:
            raise HistoryUnavailable(
                "this broker has no archive", hint="start it with --archive, or TUREEN_ARCHIVE"
            )

    async def _view(self, shard: int, name: str, at: At) -> View:
        if not isinstance(at, Period):
            return await self.view_at(shard, name, at)
        return await self.view_over(shard, name, at.from_ms, None if at.to_ms is None else at.to_ms - 1)

    async def view_over(self, shard: int, name: str, first_ms: int, last_ms: int | None) -> View:
        """As :meth:`view_at` for two instants; last_ms None: NOW is the last."""
        view = await self.view_at(shard, name, first_ms)
        return view if last_ms is None else await self.view_at(shard, name, last_ms)

    async def view_at(self, shard: int, name: str, at_ms: int | None) -> View:
        """The view of now, in which NOW has come as far as an instant that has passed, where the clock moves
        it. Raises InstantOutOfRange of an instant that seems to be in another unit.
        """
        view = self._node.shards[shard].view()
        now_ms = view.now_ms(name)
        if at_ms is None:
            return view
        _refuse_other_units(at_ms, now_ms)
        if now_ms is None or name not in view.standing or not now_ms < at_ms <= time.time_ns() // 1_000_000:
            return view
        known = self._node.directory.sources
        streams = [known[one].stream for one in view.standing[name].sources if one in known]
        behind = tuple(one.name for one in streams if not one.event_time or one.idle_advances)
        if not behind:
            return view
        await self._node.shards.hand_over(shard, [ShardCommand.prove(behind)])
        return self._node.shards[shard].view()

    async def _timed(
        self, view: View, shard: int, name: str, form: AnswerForm, at: At, first: int | None
    ) -> TakenAnswer:
        taken = self._little(view, shard, name, form) if at is None and first is None else None
        if taken is not None:
            return taken
        began_s = time.perf_counter()
        work = partial(self._work, view, shard, name, form, at, self._settings.snapshot_rows_max, first)
        found, cost_s = await self.pool.do(work)
        if at is None and first is None:
            self._learn(view, name, cost_s)
        self._metrics.snapshot(form, time.perf_counter() - began_s, len(found.data))
        return found

    def at_once(self, name: str, form: AnswerForm) -> TakenAnswer | None:
        """The answer of now; None where it is waited for or takes long, which :meth:`take` may do.

        Raises what :meth:`take` raises, and UnknownQuery of one that is being replaced.
        """
        self._require_memory()
        number = shard_of(self._node, name)
        if self._node.hosting.is_arriving(number):
            return None
        shard = self._node.shards[number]
        taken = self._little(shard.view(), number, name, form)
        if taken is not None:
            shard.asked.count(name)
        return taken

    def _require_memory(self) -> None:
        """Raise MemoryBudgetExceeded where answers would take what is left."""
        short = self._node.setup.memory.refuses(Level.SHED, "no answers are given")
        if short is not None:
            raise short

    def _little(self, view: View, shard: int, name: str, form: AnswerForm) -> TakenAnswer | None:
        """An answer of which little is expected; None where it has many rows, or takes long."""
        if self._expected_s(view, name) >= AT_ONCE_S:
            return None
        began_s = time.perf_counter()
        rows_max = min(self._settings.snapshot_rows_max, AT_ONCE_ROWS)
        try:
            taken, cost_s = self._work(view, shard, name, form, None, rows_max)
        except LimitExceeded:
            return None  # the pool says which limit, if it is one
        self._learn(view, name, cost_s)
        self._metrics.snapshot(form, time.perf_counter() - began_s, len(taken.data))
        return taken

    def _work(
        self,
        view: View,
        shard: int,
        name: str,
        form: AnswerForm,
        at: At,
        rows_max: int,
        first: int | None = None,
    ) -> tuple[TakenAnswer, float]:
        """An answer, and how many seconds of a core it took."""
        busy_s = time.thread_time()
        found = view.snapshot(name, at, rows_max=rows_max, first=first)
        position = None
        if at is None:
            birth = Birth(name, shard, view.standing[name].born.sequence, self._node.shards[shard].life)
            position = str(Cursor(found.position, found.now_ms, birth))
        with self._node.setup.memory.accounts.answering(found.rows.nbytes):
            data = encode(found, form, self._settings.snapshot_bytes_max, position)
        cost_s = time.thread_time() - busy_s
        self._node.shards[shard].asked.spend(name, cost_s)
        return TakenAnswer(found, data, position), cost_s

    async def _completed(
        self, view: View, name: str, form: AnswerForm, at: At, first: int | None
    ) -> TakenAnswer:
        """Take an answer that is completed with rows of the archive; threads of the archive's own work it
        out.
        """
        archive_answers = self.archive_answers
        assert archive_answers is not None
        began_s = time.perf_counter()

        def work() -> TakenAnswer:
            found = archive_answers.answer(view, name, at, self._settings.snapshot_rows_max)
            reached = Reached(found.rows, found.earliest_ms)
            some = replace(found.answer, rows=found.answer.rows.first(first))
            with self._node.setup.memory.accounts.answering(some.rows.nbytes):
                data = encode(some, form, self._settings.snapshot_bytes_max, archive=reached)
            return TakenAnswer(some, data, None, reached)

        taken = await archive_answers.within(work)
        self._metrics.archive_answers(
            time.perf_counter() - began_s, taken.archive.rows if taken.archive else 0
        )
        return taken

    def _expected_s(self, view: View, name: str) -> float:
        """What an answer may cost; at least AT_ONCE_S where nothing is known."""
        known = self._cost_s.get(name)
        if known is not None:
            return known
        one = view.standing.get(name)
        template = None if one is None else one.template
        return self._cost_s.get(template, AT_ONCE_S) if isinstance(template, Template) else AT_ONCE_S

    def _learn(self, view: View, name: str, cost_s: float) -> None:
        if len(self._cost_s) >= KNOWN_MAX:
            self._cost_s.clear()
        self._cost_s[name] = cost_s
        template = view.standing[name].template
        if isinstance(template, Template):
            self._cost_s[template] = cost_s

    async def response(
        self,
        name: str,
        form: SnapshotFormat,
        at: At,
        archive: bool | None = None,
        first: int | None = None,
    ) -> Response:
        """The answer as HTTP has it. Raises what :meth:`take` raises."""
        return _response(await self.take(name, form, at, archive, first), form)

    def close(self) -> None:
        self.pool.close()
        if self.archive_answers is not None:
            self.archive_answers.pool.shutdown(wait=False, cancel_futures=True)


class AtOnce:
    """Responses to plain requests whose answer takes little, before there is a task for them."""

    def __init__(self, guard: Guard, snapshots: Snapshots) -> None:
        self._guard = guard
        self._snapshots = snapshots

    def __call__(self, scope: Scope) -> Response | None:
        """Answer a plain request at once; None: the application answers, or says what is wrong."""
        request = _plain(scope)
        if request is None or request.at is not None or request.archive is not None:
            return None
        headers = dict(scope["headers"])
        if not headers.keys().isdisjoint(_NOT_PLAIN) or self._guard.refusal(scope, headers) is not None:
            return None
        try:
            taken = self._snapshots.at_once(self._snapshots.opened(request.handle), request.form)
        except Exception:  # noqa: BLE001
            return None  # it fails in the application as well, which knows how to tell of it
        return None if taken is None else _response(taken, request.form)


class ShortWay:
    """Answers plain requests for snapshots; passes everything else on. Plain ASGI."""

    def __init__(self, app: ASGIApp, snapshots: Snapshots) -> None:
        self._app = app
        self._snapshots = snapshots

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        response = await self._answered(scope) if scope["type"] == "http" else None
        await (response or self._app)(scope, receive, send)

    async def _answered(self, scope: Scope) -> Response | None:
        request = _plain(scope)
        if request is None:
            return None
        try:
            name = self._snapshots.opened(request.handle)
            return await self._snapshots.response(name, request.form, instant_ms(request.at), request.archive)
        except TureenError as error:
            return answer(error)
        except Exception:  # noqa: BLE001
            return None  # it fails in the application as well, which knows how to tell of defects


class _Plain(NamedTuple):
    """A request for a snapshot, in the form that most have."""

    handle: str
    form: SnapshotFormat
    at: str | None
    archive: bool | None


def _plain(scope: Scope) -> _Plain | None:
    """None for any other request."""
    if scope["method"] != "GET":
        return None
    path = _PATH.fullmatch(scope["path"])
    query = _QUERY.fullmatch(scope["query_string"].decode("latin-1"))
    if path is None or query is None:
        return None
    archive = None if query[3] is None else query[3] == "true"
    return _Plain(path[1], cast("SnapshotFormat", query[1] or "json"), query[2], archive)


def _refuse_other_units(at_ms: int, now_ms: int | None) -> None:
    """Raise InstantOutOfRange for an instant that seems to be in seconds, say: its answer would be empty."""
    unit = None if now_ms is None else unit_of(at_ms, now_ms)
    if unit is not None:
        assert now_ms is not None
        hint = f"{at_ms} looks like {unit}; at is ms since 1970, or ISO 8601"
        raise InstantOutOfRange(at_ms, None, now_ms, hint=hint)


def _response(taken: TakenAnswer, form: SnapshotFormat) -> Response:
    return Response(taken.data, 200, _headers(taken), CONTENT_TYPES[form])


def _headers(taken: TakenAnswer) -> dict[str, str]:
    """What an answer says of itself, for formats that hold rows alone."""
    found = taken.answer
    headers = {
        "Tureen-Position": str(found.position),
        "Tureen-Rows-Total": str(found.rows.total),
        "Tureen-Complete": str(found.complete).lower(),
        "Tureen-Approximate": str(found.approximate).lower(),
        "Tureen-Approximation": header_text(found.approximation),
        "Tureen-Errors": str(found.errors),
        "Tureen-Condition-Errors": str(found.condition_errors),
        "Tureen-Late": str(found.lost.late),
        "Tureen-Dead-Letters": str(found.lost.broken),
        "Cache-Control": "no-store",
    }
    if found.now_ms is not None:
        headers["Tureen-Now-Ms"] = str(found.now_ms)
    if found.lost.since_ms is not None:
        headers["Tureen-Counted-From-Ms"] = str(found.lost.since_ms)
    if found.complete_from_ms is not None:
        headers["Tureen-Complete-From-Ms"] = str(found.complete_from_ms)
    if found.catching_up:
        headers["Tureen-Catching-Up"] = header_text(found.catching_up)
    if taken.archive is not None:
        headers["Tureen-Archive-Rows"] = str(taken.archive.rows)
        if taken.archive.earliest_ms is not None:
            headers["Tureen-Earliest-Ms"] = str(taken.archive.earliest_ms)
    if taken.swapped_in_ms is not None:
        headers["Tureen-Swapped-In-Ms"] = str(taken.swapped_in_ms)
    if taken.change_position is not None:
        headers["Tureen-Change-Position"] = taken.change_position
    return headers
