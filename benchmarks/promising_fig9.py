"""Figure 9: what summaries cost and give: insertion, time to a hit, outputs a row.

Two stores join on the item over one minute, a gap of 100 units, `WITH PREFERENCE desc`. Four structures: T1
has no summary and visits the rows of the window, the newest first; T2 has time zones; T3 zones and 16 value
buckets; T4 those with zones that follow the stream. Zones of T2 and T3 last 2.5 s, those of T4 10 s at most.

The paper saw insertions of 3.5 to 7.5 units, rising from T1 to T4, times to a hit of up to 80, falling, and
0 to 12 outputs a row, rising. What must hold: T4 at least 6 times the outputs of T1 and 0.95 of T3's.

Figures, each `.<structure>`: `insert_units`, of the clock; `insert_ns`, measured, to store a row and to
summarise it; `visits_per_hit`; `hit_ns`, measured, all work of the set a pair, and of T1 that of its loop;
`out_per_in`, output tuples a row of input, and with `exact` that of the exact output.
"""

from __future__ import annotations

import argparse
import time
from statistics import median

from benchmarks.report import Figure, Plot, Report, Series
from benchmarks.stores import runs
from benchmarks.stores.costs import STRUCTURES
from benchmarks.stores.exact import exact
from benchmarks.stores.promising import Promising
from benchmarks.stores.runs import WINDOW_S
from benchmarks.stores.structures import costs_of, insert_ns, structures

AXES = {
    "insert_units": ("insertion, units", 3.5, 7.5),
    "visits_per_hit": ("visits a hit", 0, 80),
    "out_per_in": ("outputs a row", 0, 12),
}
"""Axes of the paper's figure; its time to a hit is in units, 2.5 a visit."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options that all figures over the stores have."""
    runs.add_arguments(parser, [100], 600)


def run(options: argparse.Namespace) -> Report:
    """All structures at the first gap."""
    costs = costs_of(options)
    lines = structures(costs, options.step_ms)
    gap, window_ms = options.gaps[0], 1_000 * WINDOW_S
    found: dict[str, list[float]] = {}
    for seed in runs.seeds(options):
        rows = runs.rows_of(options, seed, gap)
        found.setdefault("out_per_in.exact", []).append(exact(rows, window_ms).per_row)
        for name, line in lines.items():
            began = time.process_time()
            if isinstance(line, Promising):
                output, took = line.timed(rows, window_ms)
                spent_s = took.all_s
            else:
                output, spent_s = line.run(rows, window_ms), time.process_time() - began
            for key, value in (
                ("visits_per_hit", output.visits / max(1, output.pairs)),
                ("hit_ns", 1e9 * spent_s / max(1, output.pairs)),
                ("out_per_in", output.per_row),
            ):
                found.setdefault(f"{key}.{name}", []).append(value)
    figures: dict[str, Figure] = {}
    for name in STRUCTURES:
        figures[f"insert_units.{name}"] = costs.insertion[name]
        figures[f"insert_ns.{name}"] = insert_ns(name, options.seed)
    figures |= {key: median(values) for key, values in found.items()}
    for key, (label, low, high) in AXES.items():
        told = ", ".join(f"{name.upper()} {figures[f'{key}.{name}']:.2f}" for name in STRUCTURES)
        print(f"{label}: {told}; the paper's axis {low:g} to {high:g}")
    for other, times in (("t1", 6.0), ("t3", 0.95)):
        ratio = float(figures["out_per_in.t4"]) / max(1e-9, float(figures[f"out_per_in.{other}"]))
        verdict = "holds" if ratio >= times else "does not hold"
        print(f"{verdict}: T4 has at least {times:g} times the outputs of {other.upper()}: {ratio:.2f}")
    places = list(range(1, 1 + len(STRUCTURES)))
    plots = [
        Plot(
            "T1 to T4", label, [Series(key, places, [float(figures[f"{key}.{name}"]) for name in STRUCTURES])]
        )
        for key, (label, _, _) in AXES.items()
    ]
    return Report(figures, plots)
