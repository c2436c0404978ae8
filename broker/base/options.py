"""Options of a registration: as JSON brings them, as steps carry them, and what the broker reads of them.

| option           | values                    | read by                              |
|------------------|---------------------------|--------------------------------------|
| `maintenance`    | auto, none, lazy, eager   | the engine                           |
| `paused`         | true, false               | the engine; `active` is its opposite |
| `release`        | true, false               | the engine: a paused query's rows    |
| `latency_ms_max` | ms, 1 to 3,600,000        | the engine: deadlines of rows        |
| `max_fp`         | a share from 0 to 1       | the engine: wrong rows it allows     |
| `max_fn`         | a share from 0 to 1       | the engine: missing rows it allows   |
| `max_error`      | above 0, up to 1          | the engine: error of its aggregates  |
| `weight`         | a number in (0, 1000]     | the broker: a registration's weight  |
| `fade`           | a number in (0, 1]        | the engine: of a preference          |
| `priority`       | count, density            | the engine: of a preference          |

`max_fp`, `max_fn`, `max_error` and `weight` may stand in the text too, `WITH (max_fn = 0.1)`: an option
counts while it is set; `fade` counts in the place of FADE FACTOR. `strategy`, `structure` and `partitions`
are read by the engine too (:class:`QueryOptions`). `paused_because` is set by the broker, where it has paused
the query itself. The name of a query is kept as an option, `NAME_OPTION`, since it comes, changes and goes as
these do; records, requests and lists have it beside them. Others are kept and passed over: they belong to
whoever registered. A name that is so near to one of these that it may be a slip of it is refused.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterable, Mapping
from dataclasses import fields
from typing import Any

from engine.model.maintenance import QueryOptions
from engine.model.query_name import NAME_OPTION, QUERY_NAME_TEXT, is_query_name
from engine.model.tolerance import amount
from tureen.errors import MemoryPaused, OptionRefused

NONE: Mapping[str, Any] = {}
"""No options: one object for all queries that have none. Never changed."""


def given(options: Mapping[str, Any]) -> dict[str, Any]:
    """The options without those that are null: they have their defaults."""
    return {name: value for name, value in options.items() if value is not None}


def merged(options: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """Options with some changed; None: to the default. A change of ``paused`` is also the end of ``active``,
    which says the same, and one that resumes of ``release``.

    >>> merged({"active": False, "release": True, "weight": 2}, {"paused": False})
    {'weight': 2, 'paused': False}
    """
    before = dict(options)
    if "paused" in changes:
        before.pop("active", None)
        if not changes["paused"]:
            before.pop("release", None)
    after = given({**before, **changes})
    if after.get("release") is False:
        del after["release"]
    return after


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


def weight_of(options: Mapping[str, Any]) -> float | None:
    """The weight asked for, None where none is. Raises OptionRefused."""
    return amount("weight", options["weight"]) if "weight" in options else None


PAUSED_BECAUSE = "paused_because"
"""The option that says why the broker itself has paused a query; gone when the user resumes it."""


def pause_reason(options: Mapping[str, Any]) -> dict[str, Any] | None:
    """The error that a query shows which the broker has paused; None where a user did, or nobody."""
    because = options.get(PAUSED_BECAUSE)
    if not isinstance(because, str) or not is_paused(options):
        return None
    return MemoryPaused(because).as_dict()


SETTABLE = (*(field.name for field in fields(QueryOptions)), "active", "weight")
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


def query_name(options: Mapping[str, Any]) -> str | None:
    """The name of the query that has these options; None where it has none."""
    name = options.get(NAME_OPTION)
    return name if isinstance(name, str) else None


def published(record: Mapping[str, Any]) -> dict[str, Any]:
    """A registration as it is written to its topic: the name beside the options.

    >>> published({"sql": "SELECT v FROM s", "options": {"tureen.name": "all_of_s"}})
    {'sql': 'SELECT v FROM s', 'options': {}, 'name': 'all_of_s'}
    """
    held = record["options"]
    if NAME_OPTION not in held:
        return dict(record)
    return {**record, "options": shown(held), "name": held[NAME_OPTION]}


def shown(options: Mapping[str, Any]) -> dict[str, Any]:
    """The options as lists show them: the name of the query is not one of them."""
    return {name: value for name, value in options.items() if name != NAME_OPTION}


def check(options: Mapping[str, Any]) -> None:
    """Raises OptionRefused where one of them has a value it cannot have, or the name of one has a slip."""
    name = options.get(NAME_OPTION)
    if name is not None and not (isinstance(name, str) and is_query_name(name)):
        raise OptionRefused(f"a query cannot be named {name!r}", hint=QUERY_NAME_TEXT)
    check_names(options)
    QueryOptions.of(as_text(options))
    weight_of(options)


def is_paused(options: Mapping[str, Any]) -> bool:
    """Whether the query is to stand without being served; the options were checked."""
    return QueryOptions.of(as_text(options)).paused
