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

CALLS, SUBSCRIPTIONS = "flight_calls_max", "flight_subscriptions_max"
"""Settings: limits of what is answered, and of what is followed."""


class TooManyCalls(TureenError):
    """More calls are answered, or followed, than there may be. setting: the limit's name."""

    code = "too_many_calls"

    def __init__(self, setting: str, limit: int) -> None:
        doing = "SUBSCRIBEs are followed" if setting == SUBSCRIPTIONS else "calls are being answered"
        super().__init__(
            f"{limit:,} {doing}, which is all there may be ({setting})", hint="try again in a second"
        )


class Refused(ValueError):
    """What Arrow tells as INVALID_ARGUMENT, for which Flight has no class of its own.

    Arrow appends what ``traceback.format_exception`` makes of an error that is none of Flight's, which
    shows clients where the broker's files are. It appends the name of the class alone where that fails.
    """

    @property
    def __cause__(self) -> BaseException | None:  # type: ignore[override]
        """Raises RuntimeError, to whoever formats the error."""
        raise RuntimeError("clients are told no trace")


def raised(error: TureenError) -> Exception:
    """What a handler raises for an error. Whatever is none of the above is told as an invalid argument."""
    place = "" if error.line is None else f" (line {error.line}, column {error.column})"
    hint = f"; hint: {error.hint}" if error.hint else ""
    text = f"[{error.code}] {error.message}{place}{hint}"
    for codes, kind in _KINDS:
        if error.code in codes:
            return kind(text, orjson.dumps(error.as_dict()))
    return Refused(text)


_KINDS: tuple[tuple[tuple[str, ...], type[Exception]], ...] = (
    (_UNAVAILABLE, flight.FlightUnavailableError),
    (_UNAUTHORIZED, flight.FlightUnauthorizedError),
    (_INTERNAL, flight.FlightInternalError),
    (_TIMED_OUT, flight.FlightTimedOutError),
)
