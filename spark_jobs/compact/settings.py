"""What one run of the job is told."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from tureen.errors import SettingsError

HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS
RETAIN_MS_MIN = HOUR_MS
"""Below it nothing would be left of the hour that is being written."""
FILE_BYTES_MIN = 1 << 16

_UNITS_MS = {"s": 1_000, "m": 60_000, "h": HOUR_MS, "d": DAY_MS}
_UNITS_BYTES = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}


@dataclass(frozen=True, slots=True)
class CompactSettings:
    """Checked when it is made. Raises SettingsError.

    archive: root of the archive, a URI that Spark writes.
    streams, results: names of streams (tables) and of result topics to work on; both empty: all there are.
    queries: public ids of queries whose answers are also written as tables of typed columns.
    columns: types of such a query's columns, which JSON does not tell, as Spark's DDL; by column name.
    keys: primary keys of archived tables, for archives that do not tell them; table -> columns.
    retain_ms: rows older than that, seen from the newest one, are removed; None: none are.
    target_file_bytes: as large should files be that small ones are merged to.
    quiet_ms: partitions that got a file so recently are still being written and left alone; 0: none is.
    keep_replaced_ms: files that a commit replaced stay so long, for those who still read them.
    dry_run: say what there is to do, and change nothing.
    """

    archive: str
    streams: tuple[str, ...] = ()
    results: tuple[str, ...] = ()
    queries: tuple[str, ...] = ()
    columns: Mapping[str, str] = field(default_factory=dict)
    keys: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    retain_ms: int | None = None
    target_file_bytes: int = 128 << 20
    quiet_ms: int = 15 * 60_000
    keep_replaced_ms: int = 7 * DAY_MS
    dry_run: bool = False

    def __post_init__(self) -> None:
        if not self.archive:
            raise SettingsError("no archive is named", hint="give --archive ROOT")
        if self.retain_ms is not None and self.retain_ms < RETAIN_MS_MIN:
            raise SettingsError("less than an hour cannot be retained", hint="give --retain as 90d or 36h")
        if self.target_file_bytes < FILE_BYTES_MIN:
            raise SettingsError(f"files of less than {FILE_BYTES_MIN:,} bytes are no use")
        if self.quiet_ms < 0 or self.keep_replaced_ms < 0:
            raise SettingsError("a time to wait is below zero")
        if self.columns and not self.queries:
            raise SettingsError("types of columns go with a query", hint="give --query ID")


def duration_ms(text: str) -> int:
    """A length of time in ms. Raises SettingsError.

    >>> duration_ms("90d"), duration_ms("15m")
    (7776000000, 900000)
    """
    return _quantity(text, _UNITS_MS, "a length of time", "90d, 36h, 15m or 30s")


def size_bytes(text: str) -> int:
    """A size in bytes. Raises SettingsError.

    >>> size_bytes("128m")
    134217728
    """
    return _quantity(text, _UNITS_BYTES, "a size", "128m or 1g")


def _quantity(text: str, units: Mapping[str, int], what: str, examples: str) -> int:
    found = re.fullmatch(r"(\d{1,12})([a-z]?)", text.strip().lower())
    if found is None or found[2] not in units:
        raise SettingsError(f"{text!r} is not {what}", hint=f"write it as {examples}")
    return int(found[1]) * units[found[2]]
