"""A plot of a query's answer over time, drawn from its typed history table; needs matplotlib and no Spark."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from storage.archive.folded import read_folded
from tureen.errors import PackageMissing, UnknownColumn

CURVES_MAX = 20

Curve = tuple[list[int], list[float]]
"""Instants in ms since 1970, ascending, and the value from each on; NaN while there is none."""


def plot_history(
    uri: str,
    column: str,
    *,
    to: str | Path,
    by: str | None = None,
    title: str | None = None,
    storage_options: Mapping[str, str] | None = None,
) -> Path:
    """Draw a column over time, a step curve for each value of ``by``; at most CURVES_MAX, the longest.

    uri: of ``queries/<query id>/history``. to: the picture, by its ending PNG, SVG or PDF. Returns its path.
    Raises ArchiveMissing, ArchiveUnreadable, UnknownColumn, PackageMissing.
    """
    try:
        from matplotlib.figure import Figure
    except ModuleNotFoundError as missing:
        raise PackageMissing("matplotlib", hint="pip install matplotlib") from missing
    rows = read_folded(uri, storage_options).to_pylist()
    found = curves(rows, column, by)
    most = sorted(found, key=lambda name: -len(found[name][0]))[:CURVES_MAX]
    figure = Figure(figsize=(9, 4.5), layout="constrained")
    axes = figure.add_subplot()
    for name in sorted(most):
        instants, values = found[name]
        times = np.asarray(instants, "datetime64[ms]")
        axes.step(times, values, where="post", label=name, linewidth=1.3)
    axes.set_ylabel(column)
    axes.set_title(title or (f"{column} by {by}" if by else column), loc="left")
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", alpha=0.3)
    if by is not None and most:
        axes.legend(title=by, frameon=False, ncols=2, fontsize="small")
    figure.autofmt_xdate()
    path = Path(to)
    figure.savefig(path, dpi=150)
    return path


def curves(rows: Sequence[Mapping[str, Any]], column: str, by: str | None = None) -> dict[str, Curve]:
    """Step curves of versions, by the text of ``by``. Raises UnknownColumn.

    Where several rows have the same ``by``, the one that came last is drawn.

    >>> first = {"n": 1, "valid_from_ms": 0, "valid_to_ms": 5}
    >>> curves([first, {"n": 2, "valid_from_ms": 9, "valid_to_ms": None}], "n")
    {'': ([0, 5, 9], [1.0, nan, 2.0])}
    """
    told: dict[str, dict[int, float]] = {}
    for row in sorted(rows, key=lambda row: row["valid_from_ms"]):
        for name in (column, by):
            if name is not None and name not in row:
                raise UnknownColumn(name, hint=f"there are {', '.join(row)}")
        if row["valid_to_ms"] == row["valid_from_ms"]:
            continue
        curve = told.setdefault("" if by is None else str(row[by]), {})
        value = row[column]
        curve[row["valid_from_ms"]] = math.nan if value is None else float(value)
        if row["valid_to_ms"] is not None:
            curve.setdefault(row["valid_to_ms"], math.nan)
    return {
        name: ([ms for ms, _ in sorted(curve.items())], [value for _, value in sorted(curve.items())])
        for name, curve in told.items()
    }
