"""SHOW SUMMARIES and DESCRIBE SUMMARY as tables, narrow enough for a terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from engine.language.render import render_span

Table = dict[str, Any]

LISTED = ("name", "state", "stream", "column", "reach", "rows", "bytes", "queries")
DESCRIBED = ("granularity", "zones", "rows", "ended by", "confidence", "error")


def listed_table(found: Sequence[Mapping[str, Any]]) -> Table:
    """One row a summary; of one that waits for its stream what is known of it."""
    rows = [
        [
            one["name"],
            one["state"],
            one["stream"],
            one["attribute"],
            None if one["reach_ms"] is None else render_span(one["reach_ms"]),
            one["rows"],
            one["bytes"],
            one["queries"],
        ]
        for one in found
    ]
    return {"columns": list(LISTED), "rows": rows}


def described_table(found: Mapping[str, Any]) -> Table:
    """One row a granularity, the most recent first, and ``summary``: all that is known.

    A zone of the first granularity ends where the stream changes, at its longest, or at a multiple of the
    granularity; one of the others at a multiple of its length.
    """
    rows = [
        [
            render_span(one["length_ms"]),
            one["zones"],
            one["rows"],
            ", ".join(f"{cut} {count:,}" for cut, count in one["cuts"].items() if count),
            _rounded(one["confidence_min"]),
            _rounded(one["error_rows"]),
        ]
        for one in found["granularities"]
    ]
    return {"columns": list(DESCRIBED), "rows": rows, "summary": found}


def _rounded(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.3g}")
