"""Registrations that the broker answered before they stood: waited for, so long as a caller does."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace

from tureen import calls
from tureen.errors import BeingPrepared, BeingRegistered, TureenError
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
