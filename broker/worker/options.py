"""Options of a registration: as JSON brings them, as steps carry them, and what the broker reads of them.

| option           | values                    | read by                              |
|------------------|---------------------------|--------------------------------------|
| `maintenance`    | auto, none, lazy, eager   | the engine                           |
| `paused`         | true, false               | the engine                           |
| `latency_ms_max` | ms, 1 to 3,600,000        | the engine: deadlines of rows        |
| `weight`         | a number in (0, 1000]     | the broker: a registration's weight  |

`strategy`, `structure` and `partitions` are read by the engine too (:class:`QueryOptions`). `paused_because`
is set by the broker, where it has paused the query itself. Others are kept and passed over: they belong to
whoever registered. A name that is so near to one of these that it may be a slip of it is refused.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterable, Mapping
from dataclasses import fields
from typing import Any

from engine.model.maintenance import QueryOptions
from tureen.errors import MemoryPaused, OptionRefused

WEIGHT_DEFAULT = 1.0
WEIGHT_MAX = 1_000.0

NONE: Mapping[str, Any] = {}
"""No options: one object for all queries that have none. Never changed."""


def given(options: Mapping[str, Any]) -> dict[str, Any]:
    """Without those that are null: they have their defaults."""
    return {name: value for name, value in options.items() if value is not None}


def as_text(options: Mapping[str, Any]) -> Mapping[str, str]:
    """The options as a step carries them.

    >>> as_text({"paused": True, "weight": 2, "team": "a"})
    {'paused': 'true', 'weight': '2', 'team': 'a'}
    """
    if not options:
        return NONE
    return {
        name: str(value).lower() if isinstance(value, bool) else str(value) for name, value in options.items()
    }


def weight_of(options: Mapping[str, Any]) -> float:
    """The weight asked for. Raises OptionRefused."""
    given = options.get("weight", WEIGHT_DEFAULT)
    try:
        weight = math.nan if isinstance(given, bool) else float(given)
    except (TypeError, ValueError):
        weight = math.nan
    if not 0 < weight <= WEIGHT_MAX:
        raise OptionRefused(
            f"weight cannot be {given!r}", hint=f"a number above 0 and up to {WEIGHT_MAX:,.0f}; 1 is usual"
        )
    return weight


PAUSED_BECAUSE = "paused_because"
"""The option that says why the broker itself has paused a query; gone when the user resumes it."""


def pause_reason(options: Mapping[str, Any]) -> dict[str, Any] | None:
    """The error that a query shows which the broker has paused; None where a user did, or nobody."""
    because = options.get(PAUSED_BECAUSE)
    if not isinstance(because, str) or not is_paused(options):
        return None
    return MemoryPaused(because).as_dict()


SETTABLE = (*(field.name for field in fields(QueryOptions)), "weight")
"""What a registration can set."""
NEAR = 0.8
"""From which share of common characters on, as difflib counts them, a name is taken for a slip of another."""
_NEAR_CHARACTERS = (
    math.floor(min(map(len, SETTABLE)) * NEAR / (2 - NEAR)),
    math.ceil(max(map(len, SETTABLE)) * (2 - NEAR) / NEAR),
)
"""No name that is shorter or longer is so near to one of SETTABLE."""


def check_names(names: Iterable[str]) -> None:
    """Raises OptionRefused for a name that looks like an option and is none, in capitals or with a slip.

    O(names x options), and nothing for the names of options.
    """
    least, most = _NEAR_CHARACTERS
    for name in names:
        if name in SETTABLE or name == PAUSED_BECAUSE or not least <= len(name) <= most:
            continue
        near = difflib.get_close_matches(name.lower(), SETTABLE, cutoff=NEAR)
        if near:
            meant = " or ".join(near)
            raise OptionRefused(
                f"there is no option {name!r}",
                hint=f"did you mean {meant}? An option of your own needs a name that is less like it",
            )


def check(options: Mapping[str, Any]) -> None:
    """Raises OptionRefused where one of them has a value it cannot have, or the name of one has a slip."""
    check_names(options)
    QueryOptions.of(as_text(options))
    weight_of(options)


def is_paused(options: Mapping[str, Any]) -> bool:
    """Whether the query is to stand without being served; the options were checked."""
    return QueryOptions.of(as_text(options)).paused
