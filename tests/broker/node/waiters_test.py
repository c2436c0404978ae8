"""Outcomes reach those who wait for them, whichever comes first, and are kept for nobody else."""

from __future__ import annotations

import asyncio

from broker.base.internal import Outcome
from broker.node.waiters import Waiters

RUNNING: Outcome = {"state": "RUNNING"}
FIRST, SECOND = ("queries", 0, 1), ("queries", 0, 2)


def test_an_outcome_that_comes_before_it_is_asked_for_is_kept() -> None:
    async def run() -> None:
        waiters = Waiters()
        with waiters.expecting():
            waiters.tell(FIRST, RUNNING)
            assert await waiters.outcome(FIRST, 0.0) == RUNNING
            waiters.tell(FIRST, RUNNING)
            assert await waiters.outcomes([FIRST, SECOND], 0.0) == [RUNNING, None]

    asyncio.run(run())


def test_an_outcome_that_is_waited_for_comes() -> None:
    async def run() -> None:
        waiters = Waiters()
        with waiters.expecting():
            both = asyncio.create_task(waiters.outcomes([FIRST, SECOND], 10.0))
            await asyncio.sleep(0)
            waiters.tell(SECOND, {"state": "GONE"})
            waiters.tell(FIRST, RUNNING)
            assert await both == [RUNNING, {"state": "GONE"}]

    asyncio.run(run())


def test_outcomes_are_kept_for_those_alone_who_write_records() -> None:
    async def run() -> None:
        waiters = Waiters()
        waiters.tell(FIRST, RUNNING)
        assert not waiters._known
        with waiters.expecting():
            with waiters.expecting():
                waiters.tell(SECOND, RUNNING)
            assert await waiters.outcome(FIRST, 0.0) is None
            assert waiters._known
        assert not waiters._known

    asyncio.run(run())


def test_one_that_nobody_waits_for_any_more_is_told_when_it_is_known() -> None:
    async def run() -> None:
        waiters, told = Waiters(), []
        with waiters.expecting():
            assert await waiters.outcome(FIRST, 0.0) is None
            waiters.when_told(FIRST, told.append)
        waiters.tell(SECOND, RUNNING)
        await asyncio.sleep(0)
        assert not told
        waiters.tell(FIRST, RUNNING)
        await asyncio.sleep(0)
        assert told == [RUNNING]

    asyncio.run(run())
