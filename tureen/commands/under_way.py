"""Wait for a registration that is on its way, or is being prepared: how far it is, on stderr."""

from __future__ import annotations

import time

from tureen import console
from tureen.client import Query
from tureen.errors import TureenError
from tureen.settling import is_on_its_way

LOOK_S = 0.2
LINE_S = 2.0
"""A line is written so often at most."""


def wait(query: Query) -> None:
    """Return once a registered query stands. Raises why it does not: it was refused, or waits for something
    else than its own registration. Ctrl-C ends the wait.
    """
    error, said_s = query.error, time.monotonic()
    while error is not None and is_on_its_way(error):
        if time.monotonic() - said_s >= LINE_S:
            console.err().print(error.message, style="dim", markup=False)
            said_s = time.monotonic()
        time.sleep(LOOK_S)
        error = _error(query)
    if error is not None:
        raise error


def _error(query: Query) -> TureenError | None:
    status = query.status()
    return status.error if status.state in ("PENDING", "ERROR") else None
