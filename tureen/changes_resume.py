"""How a change feed is followed over connections that break, without any input or output.

:func:`following` is a generator of what a connection, blocking or not, has to carry out:

    following                         connection
    yields Open        ------------>  sends it, does not read the body of a success
                       <------------  the response, or httpx.HTTPError thrown in
    yields Read        ------------>  waits for bytes
                       <------------  the next ones, b"" behind the last, or httpx.HTTPError thrown in
    yields Pause       ------------>  waits
    yields an Event    ------------>  hands it over
    returns, or raises TureenError

Every connection begins behind the position of the last event, so that each change is handed over exactly
once. A connection that breaks, says nothing for too long, or is ended by a broker that stops, is made again:
at once, then after pauses that double, with chance in them so that a thousand clients do not come back
together.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass, replace
from typing import Any, cast, get_args

import httpx

from tureen.calls import query_path
from tureen.changes import AwayEvent, EndEvent, EndReason, Event, SnapshotEvent
from tureen.changes_wire import FeedEnded, Reader
from tureen.errors import BrokerUnavailable, MustRefetch, TureenError
from tureen.exchange import ATTEMPTS, PAUSE_S, Pause, refusal, unavailable

PAUSE_MAX_S = 5.0
POLL_MARGIN_S = 10.0
"""What the answer of a long poll may take beyond the wait that was asked for."""

_AGAIN_LATER = {429, 500, 502, 503, 504}
"""What a broker, or what stands before it, says while it starts or has too much to do."""


@dataclass(frozen=True, slots=True)
class Wishes:
    """How a query is to be followed.

    since: the position behind which changes are wanted; None begins with the answer of now.
    live: go on when all there is has been told. refetch: begin anew where a position cannot be resumed, else
    raise MustRefetch. poll: ask again and again instead of keeping one answer open.
    patience_s: how long a broker that was there may be away. silence_s: how long a connection may say
    nothing.
    """

    since: str | None = None
    live: bool = True
    refetch: bool = True
    poll: bool = False
    patience_s: float = 600.0
    silence_s: float = 30.0


@dataclass(frozen=True, slots=True)
class Open:
    """A connection to make instead of the one before."""

    path: str
    params: dict[str, str | int]
    read_s: float
    """Longest, in seconds, that nothing may come."""


class Read:
    """Bytes are wanted."""


Steps = Generator[Open | Read | Pause | Event, Any, None]


class _Again(Exception):
    """A connection is over. error: why, told if no other one comes about."""

    def __init__(self, error: TureenError) -> None:
        self.error = error


def following(
    handle: str, wishes: Wishes, address: str, clock: Callable[[], float], chance: Callable[[], float]
) -> Steps:
    """Follow a query. clock: seconds that only go on. chance: numbers from 0 to 1.

    Raises UnknownQuery, PositionRefused, MustRefetch, QueryPaused and what else the broker answers with, and
    BrokerUnavailable when it does not answer: at the beginning soon, later when the patience is over.
    """
    state = _State(wishes, Reader(), address)
    lost_s: float | None = None
    failures = 0
    while True:
        try:
            for_good = yield from _connection(handle, state)
            if for_good:
                return
            lost_s, failures = None, 0  # the answer of a long poll
        except _Again as over:
            if state.heard:
                lost_s, failures, state.heard = None, 0, False
            now = clock()
            lost_s = now if lost_s is None else lost_s
            failures += 1
            if (not state.reached and failures >= ATTEMPTS) or now - lost_s >= wishes.patience_s:
                raise over.error from None
            if failures == 2 and state.reached:
                yield AwayEvent(state.position, over.error)
            yield Pause(min(PAUSE_MAX_S, PAUSE_S * 2 ** min(failures - 1, 16)) * (0.5 + chance() / 2))


@dataclass(slots=True)
class _State:
    """Where following is. gap: changes were missed, the next answer is a new beginning. reached: there was a
    broker once. heard: this connection has told something."""

    wishes: Wishes
    reader: Reader
    address: str
    position: str | None = None
    gap: bool = False
    reached: bool = False
    heard: bool = False

    def __post_init__(self) -> None:
        self.position = self.wishes.since


def _connection(handle: str, state: _State) -> Generator[Open | Read | Event, Any, bool]:
    """One connection from its opening to its end. True: following is over. Raises _Again, TureenError."""
    state.reader.restart()
    polls = state.wishes.poll and state.wishes.live
    try:
        response = yield _opening(handle, state, polls)
        if response.status_code >= 400:
            _refused(response, state)
        state.reached = True
        body = b""
        while data := (yield Read()):
            if polls:
                body += data
            elif (yield from _hand_over(state.reader.feed(data), state)):
                return True
        if polls:
            return (yield from _hand_over(state.reader.answer(body), state))
    except (httpx.UnsupportedProtocol, httpx.InvalidURL):
        raise BrokerUnavailable(
            f"{state.address!r} is not an address", hint="write it like http://127.0.0.1:8080"
        ) from None
    except httpx.HTTPError as error:
        raise _Again(unavailable(error, state.address)) from None
    except MustRefetch:
        if not state.wishes.refetch or state.position is None:
            raise
        state.position, state.gap = None, True
        return False
    raise _Again(BrokerUnavailable(f"the broker at {state.address} ended the connection"))


def _opening(handle: str, state: _State, polls: bool) -> Open:
    wishes = state.wishes
    params: dict[str, str | int] = {"live": "poll" if polls else str(wishes.live).lower()}
    if polls:
        params["wait_ms"] = round(wishes.silence_s * 1_000)
    if state.position is not None:
        params["since"] = state.position
    path = f"{query_path(handle)}/changes"
    return Open(path, params, wishes.silence_s + (POLL_MARGIN_S if polls else 0.0))


def _refused(response: httpx.Response, state: _State) -> None:
    """Raise what a refusal means: begin anew, try again, or give up."""
    error = refusal(response, state.address)
    if response.status_code == 410 and not isinstance(error, MustRefetch):
        error = MustRefetch()
    if response.status_code in _AGAIN_LATER and (state.reached or response.status_code == 503):
        raise _Again(error)
    raise error


def _hand_over(told: list[Any], state: _State) -> Generator[Event, Any, bool]:
    """Yield events and note where they lead. True: the feed has come to its end."""
    for one in told:
        state.heard = True
        if isinstance(one, FeedEnded):
            if one.reason == "must_refetch":
                raise MustRefetch()
            state.position = one.position or state.position
            if one.reason == "failed":
                raise one.error or BrokerUnavailable("the broker ended the feed and gave no reason")
            if one.reason not in get_args(EndReason):  # it stops, or a newer one has its reasons
                raise _Again(
                    one.error
                    or BrokerUnavailable(f"the broker at {state.address} ended the feed: {one.reason}")
                )
            yield EndEvent(state.position, cast("EndReason", one.reason))
            return True
        if isinstance(one, SnapshotEvent):
            one = replace(one, reset=state.gap or state.position is not None)
            state.gap = False
        state.position = one.position
        yield one
    return False
