"""What the broker answered before it was done: registrations that do not stand yet, drops that go on. Waited
for as long as a caller does.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from tureen import calls
from tureen.answers import Dropped, Listing
from tureen.errors import BeingPrepared, BeingRegistered, TureenError, UnknownSource
from tureen.exchange import Pause, Talk
from tureen.facts import QueryStatus
from tureen.transport import Progress, Publication

LOOK_S = 0.05


def is_on_its_way(error: TureenError | None) -> bool:
    """Whether a query waits for its own registration alone, not for a stream that is missing, say."""
    return error is not None and error.code in (BeingPrepared.code, BeingRegistered.code)


def registered(
    publications: Sequence[Publication], wait_s: float, progress: Progress | None = None
) -> Talk[list[QueryStatus]]:
    """As :func:`tureen.calls.register`, once what is on its way stands, or after ``wait_s`` seconds in all.
    Where the broker cannot be asked again, they are as they were told.
    """
    end_s = time.monotonic() + wait_s
    found = yield from calls.register(publications, wait_s, progress)
    for place, one in enumerate(publications):
        while is_on_its_way(found[place].error) and time.monotonic() < end_s:
            yield Pause(LOOK_S)
            try:
                now = yield from calls.status(one.handle)
            except TureenError:
                return found
            error = now.error if now.state in ("PENDING", "ERROR") else None
            found[place] = replace(found[place], state=now.state, error=error)
    return found


def dropped(name: str, cascade: bool, wait_s: float) -> Talk[Dropped]:
    """As :func:`tureen.calls.drop`, once all is gone, or after ``wait_s`` seconds in all."""
    end_s = time.monotonic() + wait_s
    told = yield from calls.drop(name, cascade, wait_s)
    told = yield from _gone(told, lambda: calls.drop(name, cascade, wait_s), end_s)
    return Dropped.of(told)


def executed(sql: str, wait_s: float) -> Talk[Listing]:
    """As :func:`tureen.calls.execute`, of a DROP once all is gone, or after ``wait_s`` seconds in all."""
    end_s = time.monotonic() + wait_s
    listing = yield from calls.execute(sql, wait_s)
    if not _goes_on(listing.facts):
        return listing

    def again() -> Talk[Mapping[str, Any]]:
        return (yield from calls.execute(sql, wait_s)).facts

    return Listing.of((yield from _gone(listing.facts, again, end_s)))


def _goes_on(told: Mapping[str, Any]) -> bool:
    return told.get("state") == "PENDING" and "ended" in told


def _gone(
    told: Mapping[str, Any], again: Callable[[], Talk[Mapping[str, Any]]], end_s: float
) -> Talk[Mapping[str, Any]]:
    """What is told of a drop that goes on, once it does no more. again: joins it."""
    while _goes_on(told) and time.monotonic() < end_s:
        yield Pause(LOOK_S)
        try:
            now = yield from again()
        except UnknownSource:
            now = {"skipped": True}
        told = {**told, "state": "GONE"} if now.get("skipped") else now
    return told
