"""Users' functions in processes of their own: a call that hangs, ends its process or takes all memory is an
error of its row, and stops nobody else for long.

Rows go in pieces. Where a piece is not answered, since a call in it takes longer than calls may or the
process ends, the process is killed and another takes its place; the row of that call is called once more by
itself, and is an error if that fails again. So one that is late because the machine stood still gets its
value. Rows beside it are called again: a function may be called more often than there are rows. How much time
may be lost like this is limited (:mod:`broker.runtime.lost_time`).
"""

from __future__ import annotations

import contextlib
import select
import threading
import time
from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from broker.base import logs
from broker.base.settings import Settings
from broker.runtime.fatal_arguments import FatalArguments
from broker.runtime.function_frames import BrokenFrame, answered, question
from broker.runtime.function_parent import FunctionParent, FunctionProcess
from broker.runtime.functions import load
from broker.runtime.lost_time import LostTime
from engine.language.evaluation.user_calls import CALLED_ROWS
from engine.language.functions import FunctionCatalogue
from engine.model.batch import Column, concatenate_columns
from engine.model.expressions import UserFunction
from engine.model.interruption import may_go_on
from engine.model.user_calls import REASONS, CallOutcome, Reason

log = logs.get()

PIECE_NS = 50e6
"""A piece of a function of single values should take no longer, so that little is called again."""

PIECE_ROWS = 4_096
"""Nor should it have more rows."""

LOOK_S = 0.02
"""How often it is looked at whether a call takes too long, and whether anybody still waits."""

LOADING_S = 10.0
"""A process that has not loaded its modules by then is killed."""


BEGINNING_S = 1.0
"""So much longer than a call it may take before the first call begins: to take up the rows."""

LOST_MIN_S = 0.05
"""The least that counts as lost with a process."""


class _Trouble(Exception):
    """A piece was not answered. row: of the call that was under way, within the piece; None: none was.
    lost_s: what the function lost by it.
    """

    def __init__(self, reason: Reason, row: int | None, lost_s: float) -> None:
        super().__init__(reason)
        self.reason: Reason = reason
        self.row = row
        self.lost_s = max(LOST_MIN_S, lost_s)


@dataclass(frozen=True, slots=True)
class _Piece:
    """Rows that go together. one_by_one: each in a call of its own. returned: calls for them did, before."""

    start: int
    stop: int
    one_by_one: bool = False
    returned: bool = False

    def __len__(self) -> int:
        return self.stop - self.start


@dataclass(slots=True)
class _Rows:
    """The rows of one call of the engine, in pieces that are still to be asked."""

    function: UserFunction
    columns: Sequence[Column]
    pieces: deque[_Piece] = field(default_factory=deque)
    found: dict[int, CallOutcome] = field(default_factory=dict)
    """By their first row."""
    fatal: dict[int, Reason] = field(default_factory=dict)
    """Rows that failed when the function was called for them alone."""

    def fail(self, piece: _Piece, reason: Reason) -> None:
        """These have no result."""
        n = len(piece)
        nothing = Column.no_rows(self.function.result).take_or_null(np.full(n, -1, np.int64))
        failed = np.ones(n, np.bool_)
        self.found[piece.start] = CallOutcome(nothing, failed, Counter({reason: n}), REASONS[reason])

    def outcome(self) -> CallOutcome:
        parts = [self.found[start] for start in sorted(self.found)]
        reasons: Counter[Reason] = Counter()
        for part in parts:
            reasons.update(part.reasons)
        told = next((part.told for part in reversed(parts) if part.told is not None), None)
        results = concatenate_columns(self.function.result, [part.results for part in parts])
        return CallOutcome(results, np.concatenate([part.failed for part in parts]), reasons, told)


@dataclass(frozen=True, slots=True)
class IsolatedCaller:
    """Calls one function in processes of its own."""

    _among: IsolatedFunctions
    _function: UserFunction
    _lost: LostTime

    def __call__(self, columns: Sequence[Column]) -> CallOutcome:
        """See :meth:`IsolatedFunctions.call`."""
        return self._among.call(self._function, columns)

    @property
    def rests(self) -> bool:
        """Whether it is not called for a while."""
        return self._lost.rests


class IsolatedFunctions:
    """The processes of one worker, for all its threads."""

    def __init__(
        self, modules: Sequence[str], directory: Path, *, call_ms: int, memory_bytes: int, processes: int
    ) -> None:
        """call_ms: the longest that a call may take. memory_bytes: that functions of one process may take.
        processes: that may be at work together; one more waits to take the place of another.
        """
        self._parent = FunctionParent(modules, directory, memory_bytes)
        self._call_s = call_ms / 1_000
        self._room = threading.Semaphore(processes)
        self._idle: deque[FunctionProcess] = deque()
        self._lost: dict[str, LostTime] = {}
        self._fatal: dict[str, FatalArguments] = {}

    def start(self) -> None:
        """Have two processes ready, one at work and one to take its place."""
        while len(self._idle) < 2:
            self._idle.append(self._parent.fork())

    def stop(self) -> None:
        """End all processes."""
        self._parent.stop()
        while self._idle:
            self._idle.popleft().close()

    def caller(self, function: UserFunction) -> IsolatedCaller:
        """What calls a function in one of the processes."""
        lost = self._lost[function.name] = LostTime(self._call_s, time.monotonic)
        self._fatal[function.name] = FatalArguments(time.monotonic)
        return IsolatedCaller(self, function, lost)

    def call(self, function: UserFunction, columns: Sequence[Column]) -> CallOutcome:
        """Call it for rows that have values; there is at least one. Raises what calls the work off."""
        known = self._fatal[function.name].find(columns)
        if not known:
            return self._call(function, columns)
        n = len(columns[0])
        failed = np.zeros(n, np.bool_)
        failed[list(known)] = True
        places = np.where(failed, -1, np.cumsum(~failed) - 1)
        others = np.flatnonzero(~failed)
        reasons = Counter(known.values())
        if not len(others):
            nothing = Column.no_rows(function.result).take_or_null(places)
            return CallOutcome(nothing, failed, reasons, REASONS[known[0]])
        found = self._call(function, [column.take(others) for column in columns])
        failed[others] = found.failed
        told = found.told or REASONS[next(iter(known.values()))]
        results = found.results.take_or_null(places)
        return CallOutcome(results, failed, reasons + found.reasons, told)

    def _call(self, function: UserFunction, columns: Sequence[Column]) -> CallOutcome:
        n = len(columns[0])
        rows = _Rows(function, columns)
        at_once = n if function.vectorised else _piece_rows(function)
        rows.pieces.extend(_Piece(start, min(start + at_once, n)) for start in range(0, n, at_once))
        while not self._room.acquire(timeout=LOOK_S):
            may_go_on()
        try:
            self._ask_all(rows)
        finally:
            self._room.release()
        if function.deterministic:
            for row, reason in rows.fatal.items():
                self._fatal[function.name].add(columns, row, reason)
        return rows.outcome()

    def _ask_all(self, rows: _Rows) -> None:
        lost = self._lost[rows.function.name]
        while rows.pieces:
            piece = rows.pieces.popleft()
            if lost.rests and not piece.returned:
                rows.fail(piece, "resting")
                continue
            columns = [column.slice(piece.start, piece.stop) for column in rows.columns]
            try:
                rows.found[piece.start] = self._asked(rows.function, columns, one_by_one=piece.one_by_one)
            except _Trouble as trouble:
                lost.lose(trouble.lost_s)
                log.warning(
                    "function_process_ended",
                    function=rows.function.name,
                    reason=trouble.reason,
                    rests=lost.rests,
                )
                if piece.returned and lost.rests:
                    rows.fail(piece, trouble.reason)
                else:
                    _divide(rows, piece, trouble)

    def _asked(self, function: UserFunction, columns: Sequence[Column], *, one_by_one: bool) -> CallOutcome:
        """What one process answers. Raises _Trouble, and what calls the work off."""
        process = self._taken()
        is_whole = False
        waiting = _Waiting(process, self._call_s)
        try:
            waiting.load()
            waiting.send(question(function, columns, one_by_one=one_by_one))
            found = answered(waiting.read, function.result, len(columns[0]))
            is_whole = True
            return found
        except (OSError, EOFError, BrokenFrame):
            raise waiting.trouble("crashed") from None
        finally:
            if is_whole:
                self._idle.append(process)
            else:
                self._parent.kill(process)

    def _taken(self) -> FunctionProcess:
        """A process that nobody uses; another one is there, or on its way, to take its place."""
        try:
            process = self._idle.popleft()
        except IndexError:
            process = self._forked()
        if not self._idle:
            with contextlib.suppress(_Trouble):
                self._idle.append(self._forked())
        return process

    def _forked(self) -> FunctionProcess:
        began_s = time.monotonic()
        try:
            return self._parent.fork()
        except OSError as failed:
            log.error("function_process_not_started", error=repr(failed))
            raise _Trouble("crashed", None, time.monotonic() - began_s) from None


def functions_of(settings: Settings) -> FunctionCatalogue:
    """The functions that the settings name, isolated ones in processes. Raises as :func:`load`."""
    isolated = IsolatedFunctions(
        settings.function_modules,
        settings.functions_path,
        call_ms=settings.function_call_ms_max,
        memory_bytes=settings.function_memory_bytes_max,
        processes=settings.function_processes_max,
    )
    catalogue = load(settings.function_modules, settings.functions_path, isolated.caller)
    if any(one.run is not None for one in catalogue.users):
        try:
            isolated.start()
        except OSError as failed:  # whoever calls tries again
            log.error("function_process_not_started", error=repr(failed))
    return catalogue


class _Waiting:
    """Waits for one process. Raises _Trouble for a call that takes too long, and what calls the work off."""

    def __init__(self, process: FunctionProcess, call_s: float) -> None:
        self._process = process
        self._before, _ = process.notes.read()
        self._calls = self._before
        self._call_s = call_s
        self._began_s = self._since_s = time.monotonic()

    def trouble(self, reason: Reason) -> _Trouble:
        """What is raised where the piece is not answered."""
        calls, row = self._process.notes.read()
        lost_s = time.monotonic() - self._began_s
        return _Trouble(reason, row if calls > self._before else None, lost_s)

    def load(self) -> None:
        """Until its modules are loaded, which is no time lost by a function unless it has no end."""
        while not self._process.is_ready():
            if time.monotonic() - self._process.began_s > LOADING_S:
                raise self.trouble("late")
            self._look(select.POLLIN)
        self._began_s = self._since_s = time.monotonic()

    def send(self, frame: bytes) -> None:
        """All of it."""
        left = memoryview(frame)
        while left:
            try:
                left = left[self._process.connection.send(left) :]
            except BlockingIOError:
                self._patient(select.POLLOUT)

    def read(self, size: int) -> bytes:
        """So many bytes of the answer. Raises EOFError where it is gone."""
        found = bytearray()
        while len(found) < size:
            try:
                piece = self._process.connection.recv(size - len(found))
            except BlockingIOError:
                self._patient(select.POLLIN)
                continue
            if not piece:
                raise EOFError
            found += piece
        return bytes(found)

    def _patient(self, event: int) -> None:
        """Until something happens, for a while. Raises _Trouble where the same call goes on for too long."""
        if self._look(event):
            return
        calls, _ = self._process.notes.read()
        now_s = time.monotonic()
        most_s = self._call_s if calls > self._before else self._call_s + BEGINNING_S
        if calls != self._calls:
            self._calls, self._since_s = calls, now_s
        elif now_s - self._since_s > most_s:
            raise self.trouble("late")

    def _look(self, event: int) -> bool:
        may_go_on()
        poll = select.poll()
        poll.register(self._process.connection, event)
        return bool(poll.poll(LOOK_S * 1_000))


def _piece_rows(function: UserFunction) -> int:
    """How many rows of a function of single values go together."""
    cost_ns = function.meter.cost_ns
    return CALLED_ROWS if cost_ns is None else max(1, min(PIECE_ROWS, int(PIECE_NS / cost_ns)))


def _divide(rows: _Rows, piece: _Piece, trouble: _Trouble) -> None:
    """What is asked in place of a piece: the row in trouble by itself, those before and behind it together.
    All of it where no call had begun.
    """
    if trouble.row is None:
        rows.pieces.appendleft(_Piece(piece.start, piece.stop, piece.one_by_one))
        return
    if rows.function.vectorised and not piece.one_by_one and len(piece) > 1:
        rows.pieces.appendleft(_Piece(piece.start, piece.stop, one_by_one=True))
        return
    at = min(piece.start + max(0, trouble.row), piece.stop - 1)
    row = _Piece(at, at + 1, one_by_one=True)
    pieces = [_Piece(piece.start, at, returned=True), row, _Piece(at + 1, piece.stop)]
    if piece.one_by_one or len(piece) == 1:  # it was called by itself
        rows.fail(row, trouble.reason)
        rows.fatal[at] = trouble.reason
        pieces.remove(row)
    rows.pieces.extendleft(reversed([one for one in pieces if len(one)]))
