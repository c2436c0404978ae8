"""A registration that is prepared in a moment is answered when it stands."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any, cast

from broker.base.entries import QueryEntry
from broker.base.internal import Outcome
from broker.http import writes
from broker.http.writes import Writes
from tureen.errors import BeingPrepared, UnknownSource

PREPARED: Outcome = {"state": "PENDING", "error": BeingPrepared(0.5).as_dict(), "position": None}
MISSING: Outcome = {"state": "PENDING", "error": UnknownSource("s").as_dict(), "position": None}


def test_it_is_waited_for_and_nothing_else_is() -> None:
    queries: dict[str, QueryEntry] = {"a": QueryEntry("SELECT 1", "PENDING", PREPARED["error"])}
    node = SimpleNamespace(directory=SimpleNamespace(queries=queries, reserved={}))
    one = Writes(cast("Any", None), cast("Any", node), cast("Any", None))

    async def run() -> None:
        looked = asyncio.create_task(one.soon(["a", "b"], [PREPARED, MISSING]))
        await asyncio.sleep(2 * writes.LOOK_S)
        assert not looked.done()
        queries["a"] = QueryEntry("SELECT 1", "RUNNING", None, 0)
        told = await looked
        assert [outcome and cast("Outcome", outcome)["state"] for outcome in told] == ["RUNNING", "PENDING"]
        assert await one.soon(["b"], [MISSING]) == [MISSING]
        assert await one.soon(["b"], [None]) == [None]

    asyncio.run(run())


def test_what_was_ended_meanwhile_is_told_as_it_was() -> None:
    node = SimpleNamespace(directory=SimpleNamespace(queries={}, reserved={}))
    one = Writes(cast("Any", None), cast("Any", node), cast("Any", None))
    assert asyncio.run(one.soon(["a"], [PREPARED])) == [PREPARED]
