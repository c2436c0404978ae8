"""Time zones as tables of transitions, of the zone data of the package tzdata.

A file of a zone (TZif, RFC 8536) lists transitions up to some year, and ends with a rule for all years behind
it. Both become one table up to the year 10000, so that a column is converted by binary search:

    instants   -inf            1893-03-31 23:06:32    1916-04-30 22:00    ...
    offsets    +0:53:28        +1:00                  +2:00               ...

Cost: a table is made once a zone, in some ms; rules give two transitions a year, 16,000 in all.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from importlib.resources import files
from typing import NamedTuple

import numpy as np

from engine.model.batch import Int64Array
from engine.model.types import TIMESTAMP_MS_MAX

_ALWAYS = -(2**60)
_YEAR_MAX = 10_000
_OFFSET = re.compile(r"([+-])(\d{1,2})(?::?(\d{2}))?", re.ASCII)
_NAME = r"(?:[A-Za-z]{3,}|<[^>]+>)"
_SPAN = r"[+-]?\d{1,3}(?::\d{2}(?::\d{2})?)?"
_RULE = re.compile(
    rf"{_NAME}({_SPAN})(?:{_NAME}({_SPAN})?,(M[\d.]+|J?\d+)(?:/({_SPAN}))?,(M[\d.]+|J?\d+)(?:/({_SPAN}))?)?",
    re.ASCII,
)


class ZoneTable(NamedTuple):
    """The offset from UTC is ``offsets[i]`` ms from ``instants[i]`` on, ascending ms since 1970 in UTC.

    walls: ``instants[i]`` as a clock shows it from then on, never before the one before: what a clock shows
    is read with ``offsets[i]`` from ``walls[i]`` on. So a time that a clock shows twice is the later instant,
    and one that it leaps over is read with the offset before.
    """

    instants: Int64Array
    offsets: Int64Array
    walls: Int64Array


def zone_named(name: str) -> ZoneTable | None:
    """The table of a zone's name, in any case, or of an offset as ``+02:00``; None where there is none."""
    match = _OFFSET.fullmatch(name)
    if match is not None:
        minutes = int(match[2]) * 60 + int(match[3] or 0)
        if minutes > 18 * 60 or int(match[3] or 0) > 59:
            return None
        return _table([_ALWAYS], [(-minutes if match[1] == "-" else minutes) * 60])
    key = zone_keys().get("utc" if name.lower() == "z" else name.lower())
    return None if key is None else _read(key)


@lru_cache(maxsize=1)
def zone_keys() -> Mapping[str, str]:
    """The names of all zones, by themselves in small letters."""
    names = (files("tzdata") / "zones").read_text(encoding="utf-8").split()
    return {name.lower(): name for name in names}


@lru_cache(maxsize=1_024)
def _read(key: str) -> ZoneTable:
    data = files("tzdata").joinpath("zoneinfo", *key.split("/")).read_bytes()
    head = 44
    counts = np.frombuffer(data, ">i4", 6, 20)
    _, _, leaps, times, types, characters = (int(count) for count in counts)
    begin = head + 5 * times + 6 * types + characters + 8 * leaps + int(counts[0]) + int(counts[1])
    counts = np.frombuffer(data, ">i4", 6, begin + 20)
    utc, standard, leaps, times, types, characters = (int(count) for count in counts)
    at = begin + head
    instants = np.frombuffer(data, ">i8", times, at).tolist()
    kinds = np.frombuffer(data, np.uint8, times, at + 8 * times)
    at += 9 * times
    offsets = [int(np.frombuffer(data, ">i4", 1, at + 6 * kind)[0]) for kind in range(types)]
    at += 6 * types + characters + 12 * leaps + standard + utc
    rule = data[at:].decode("ascii").strip("\n")
    found = [offsets[0], *(offsets[kind] for kind in kinds)]
    behind = _behind(rule, instants[-1] if instants else _ALWAYS, found[-1])
    return _table(
        [_ALWAYS, *instants, *(at for at, _ in behind)], [*found, *(offset for _, offset in behind)]
    )


def _table(instants: list[int], offsets: list[int]) -> ZoneTable:
    """instants: seconds. offsets: seconds."""
    at, offset = np.array(instants, np.int64) * 1_000, np.array(offsets, np.int64) * 1_000
    at[0] = _ALWAYS
    return ZoneTable(at, offset, np.maximum.accumulate(at + offset))


def _behind(rule: str, last: int, offset: int) -> list[tuple[int, int]]:
    """Transitions behind the last of a file, as seconds and offsets. offset: that of the last."""
    match = _RULE.fullmatch(rule)
    if match is None:
        return []
    standard = -_seconds(match[1])
    if match[3] is None:
        return [] if standard == offset or last == _ALWAYS else [(last + 1, standard)]
    summer = standard + 3_600 if match[2] is None else -_seconds(match[2])
    begin, end = _days(match[3]), _days(match[5])
    first = int(np.datetime64(max(last, -(2**35)), "s").astype("datetime64[Y]").astype(np.int64)) + 1970
    years = slice(max(first - 1, 0), None)
    starts = begin[years] * 86_400 + _seconds(match[4] or "2") - standard
    ends = end[years] * 86_400 + _seconds(match[6] or "2") - summer
    both = sorted([*((int(at), summer) for at in starts), *((int(at), standard) for at in ends)])
    return [one for one in both if last < one[0] <= TIMESTAMP_MS_MAX // 1_000 + 86_400]


def _seconds(text: str) -> int:
    sign = -1 if text.startswith("-") else 1
    parts = text.lstrip("+-").split(":")
    hours, minutes, seconds = (int(part) for part in [*parts, "0", "0"][:3])
    return sign * ((hours * 60 + minutes) * 60 + seconds)


def _days(written: str) -> Int64Array:
    """Days since 1970 of a rule's day in each year from 0 on: int64[years]."""
    years = (np.arange(_YEAR_MAX + 1) - 1970).astype("datetime64[Y]")
    if not written.startswith("M"):
        day = int(written.lstrip("J"))
        first = years.astype("datetime64[D]").astype(np.int64)
        if not written.startswith("J"):
            return np.asarray(first + day)
        leap = (years + 1).astype("datetime64[D]").astype(np.int64) - first == 366
        return np.asarray(first + day - 1 + (leap & (day > 59)))
    month, week, weekday = (int(part) for part in written[1:].split("."))
    months = years.astype("datetime64[M]") + (month - 1)
    first = months.astype("datetime64[D]").astype(np.int64)
    following = (months + 1).astype("datetime64[D]").astype(np.int64)
    found = first + (weekday - (first + 4) % 7) % 7 + 7 * (week - 1)
    return np.asarray(np.where(found >= following, found - 7, found))
