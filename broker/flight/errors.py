"""Errors as Flight has them: a status by the code, message and hint in its text, all fields beside it."""

from __future__ import annotations

import orjson
import pyarrow.flight as flight

from tureen.errors import TureenError

_UNAVAILABLE = (
    "kafka_unavailable", "broker_unavailable", "shard_held", "being_prepared", "too_busy", "memory_budget",
    "too_many_calls", "too_many_feeds", "too_much_work",
)  # fmt: skip
"""What may be tried again."""
_UNAUTHORIZED = ("not_allowed", "handle_needed")
_INTERNAL = ("internal_error",)
_TIMED_OUT = ("request_timeout",)


class TooManyCalls(TureenError):
    """More calls are answered than there may be."""

    code = "too_many_calls"

    def __init__(self, limit: int) -> None:
        super().__init__(
            f"{limit:,} calls are being answered, which is all there may be (flight_calls_max)",
            hint="try again in a second",
        )


def raised(error: TureenError) -> Exception:
    """What a handler raises for an error. Whatever is none of the above is told as an invalid argument, which
    Flight has no class of its own for: gRPC's INVALID_ARGUMENT, by Arrow's own error.
    """
    place = "" if error.line is None else f" (line {error.line}, column {error.column})"
    hint = f"; hint: {error.hint}" if error.hint else ""
    text = f"[{error.code}] {error.message}{place}{hint}"
    for codes, kind in _KINDS:
        if error.code in codes:
            return kind(text, orjson.dumps(error.as_dict()))
    return ValueError(text)


_KINDS: tuple[tuple[tuple[str, ...], type[Exception]], ...] = (
    (_UNAVAILABLE, flight.FlightUnavailableError),
    (_UNAUTHORIZED, flight.FlightUnauthorizedError),
    (_INTERNAL, flight.FlightInternalError),
    (_TIMED_OUT, flight.FlightTimedOutError),
)
