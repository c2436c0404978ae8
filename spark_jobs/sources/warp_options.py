"""The options of a time warp, for commands whose job can write at a pace."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime
from functools import wraps
from typing import Any, TypeVar

import click

from spark_jobs.sources.pacing import NOW, Warp
from tureen.errors import SettingsError

Command = TypeVar("Command", bound=Callable[..., Any])


class Instant(click.ParamType):
    """A timestamp as text, or ``now``; becomes ms since 1970. Without a zone it is UTC."""

    name = "timestamp"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        if isinstance(value, int):
            return value
        if value == NOW:
            return time.time_ns() // 1_000_000
        try:
            at = datetime.fromisoformat(value)
        except ValueError:
            self.fail(f"{value!r} is no timestamp; write {NOW}, or such as 2024-01-31T10:00:00Z", param, ctx)
        at = at.replace(tzinfo=UTC) if at.tzinfo is None else at
        return round(at.timestamp() * 1_000)


def warp_options(command: Command) -> Command:
    """``--speed`` and ``--shift-to``, handed to the command as ``warp``: a :class:`Warp`."""

    @click.option(
        "--speed",
        type=float,
        metavar="TIMES",
        help="Write rows at their time, so many times faster than they happened.  [default: at once]",
    )
    @click.option(
        "--shift-to",
        "shift_to_ms",
        type=Instant(),
        metavar="now|TIMESTAMP",
        help="Move all timestamps so that the first is then.  [default: as they are]",
    )
    @wraps(command)
    def called(*args: Any, speed: float | None, shift_to_ms: int | None, **others: Any) -> Any:
        try:
            warp = Warp(speed, shift_to_ms)
        except SettingsError as error:
            raise click.UsageError(str(error)) from error
        return command(*args, warp=warp, **others)

    return called  # type: ignore[return-value]
