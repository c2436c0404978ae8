"""An answer that is kept current in memory: the changes of a query, folded as they come.

    with query.follow(key=["customer"]) as live:
        live.get(7)                          # the row of customer 7, without asking anybody
        live.to_pandas()                     # all of it, at live.position
        live.wait_for(lambda: len(live) > 9)

It is there once :meth:`Query.follow <tureen.Query.follow>` returns. While the broker is away it stays as it
was, and ``away`` says why; when changes were missed it begins anew by itself. Every read sees whole events:
the answer at one position. Costs are those of :mod:`tureen.folding`; all of it is in this process's memory.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterable, Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from tureen.changes import EndEvent, Event
from tureen.changes_callbacks import AsyncSubscription, Subscription, SubscriptionState
from tureen.columns import Column, Row
from tureen.errors import BrokerUnavailable, TureenError, UnknownQuery
from tureen.folding import ROWS_MAX, Fold

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    import pyarrow as pa


class Folded(SubscriptionState):
    """What a live answer can be asked.

    version: counts the events; position, error, ended and away as of a subscription.
    """

    _fold: Fold
    _lock: threading.RLock
    _gone: bool

    def _begin(self, key: Sequence[str], rows_max: int) -> None:
        self.version = 0
        self._gone = False
        self._fold = Fold(key=key, rows_max=rows_max)
        self._lock = threading.RLock()

    def _take(self, event: Event) -> None:
        with self._lock:
            self._fold.apply(event)
            self._note(event)
            self.version += 1

    @property
    def over(self) -> Exception | None:
        """Why nothing more comes; None while the query is followed."""
        return self._why_not() if self._gone or self.ended is not None else None

    def _why_not(self) -> Exception:
        """Why there is no answer, or no other one."""
        if self.error is not None:
            return self.error
        if isinstance(self.ended, EndEvent):
            return UnknownQuery()
        return BrokerUnavailable(
            "no answer came in time", hint="is the query running? `tureen queries` shows"
        )

    @property
    def now_ms(self) -> int | None:
        """NOW of the query in ms since 1970."""
        return self._fold.now_ms

    @property
    def columns(self) -> tuple[Column, ...]:
        return self._fold.columns

    def __len__(self) -> int:
        return len(self._fold)

    def rows(self) -> list[Row]:
        """All rows as tuples, as they came."""
        with self._lock:
            return self._fold.rows()

    def dicts(self) -> list[dict[str, Any]]:
        """One dict a row."""
        with self._lock:
            return self._fold.dicts()

    def get(self, *key: Any) -> dict[str, Any] | None:
        """The row of this key, None where there is none. O(1). Raises ValueError where there are several."""
        with self._lock:
            return self._fold.get(*key)

    def of(self, *key: Any) -> list[dict[str, Any]]:
        """All rows of this key. O(those)."""
        with self._lock:
            return self._fold.of(*key)

    def to_arrow(self) -> pa.Table:
        """All rows as Arrow. O(rows) the first time after a change."""
        with self._lock:
            return self._fold.to_arrow()

    def to_pandas(self) -> pd.DataFrame:
        """A pandas DataFrame. Raises PackageMissing where pandas is not installed."""
        with self._lock:
            return self._fold.to_pandas()

    def to_polars(self) -> pl.DataFrame:
        """A polars DataFrame. Raises PackageMissing without polars."""
        with self._lock:
            return self._fold.to_polars()

    def _repr_html_(self) -> str:
        """For notebooks."""
        from tureen.display import live_html

        return live_html(self)


class LiveAnswer(Folded, Subscription):
    """A live answer that a thread keeps current; any thread may read it."""

    def __init__(self, events: Iterable[Event], *, key: Sequence[str] = (), rows_max: int = ROWS_MAX) -> None:
        self._begin(key, rows_max)
        self._changed = threading.Condition(self._lock)
        super().__init__(events, self._deal_with)

    def _deal_with(self, event: Event) -> None:
        with self._changed:
            self._take(event)
            self._changed.notify_all()

    def _over(self) -> None:
        with self._changed:
            self._gone = True
            self._changed.notify_all()

    def wait_for(self, condition: Callable[[], object], timeout: float | None = None) -> bool:
        """Until the condition holds, asked after every event; False when it does not in so many seconds.

        Raises what ended following, where it ended.
        """
        with self._changed:
            self._changed.wait_for(lambda: condition() or self.over is not None, timeout)
            if condition():
                return True
            if self.over is not None:
                raise self.over
            return False

    def ready(self, timeout: float) -> LiveAnswer:
        """Wait for the first answer. Raises why none comes, and stops then."""
        try:
            if not self.wait_for(lambda: self.columns, timeout):
                raise self._why_not()
        except (TureenError, ValueError):
            self.stop()
            raise
        return self

    def __enter__(self) -> LiveAnswer:
        return self


class AsyncLiveAnswer(Folded, AsyncSubscription):
    """A live answer that a task keeps current, within one event loop."""

    def __init__(
        self, events: AsyncIterable[Event], *, key: Sequence[str] = (), rows_max: int = ROWS_MAX
    ) -> None:
        self._begin(key, rows_max)
        self._changed = asyncio.Event()
        super().__init__(events, self._deal_with)

    def _deal_with(self, event: Event) -> None:
        self._take(event)
        self._wake()

    def _over(self) -> None:
        self._gone = True
        self._wake()

    def _wake(self) -> None:
        """Whoever waits asks again; who waits from now on waits for the next event."""
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()

    async def wait_for(self, condition: Callable[[], object], timeout: float | None = None) -> bool:
        """Until the condition holds, asked after every event; False when it does not in so many seconds.

        Raises what ended following, where it ended.
        """
        try:
            async with asyncio.timeout(timeout):
                while not condition() and self.over is None:
                    await self._changed.wait()
        except TimeoutError:
            return bool(condition())
        if condition():
            return True
        raise self._why_not()

    async def ready(self, timeout: float) -> AsyncLiveAnswer:
        """Wait for the first answer. Raises why none comes, and stops then."""
        try:
            if not await self.wait_for(lambda: self.columns, timeout):
                raise self._why_not()
        except (TureenError, ValueError):
            await self.stop()
            raise
        return self

    async def __aenter__(self) -> AsyncLiveAnswer:
        return self
