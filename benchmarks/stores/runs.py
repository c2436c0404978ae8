"""Lines of a figure over gaps and seeds: their measures, what must hold of them, table and plots.

A line is a way to answer the join; a measure compares its output with the exact one. A figure is the median
over the seeds. What must hold is said as ratios of two lines, and whether it does is printed with the ratios.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Protocol

from benchmarks.numbers import Numbers
from benchmarks.report import Figure, Plot, Report, Series, readable
from benchmarks.stores import flights
from benchmarks.stores.exact import Output, exact
from benchmarks.stores.sales import Sales, draw
from broker.demo.flights import DataMissing

WINDOW_S = 60
GAPS = list(range(10, 101, 10))
DATA = ("sales", *flights.OTHERS)


class Line(Protocol):
    """A way to answer the join with too little time."""

    def run(self, sales: Sales, window_ms: int) -> Output:
        """What it finds."""
        ...


@dataclass(frozen=True, slots=True)
class Measure:
    """A figure of an output. of: (what was found, the exact output) -> it. axis: the paper's."""

    of: Callable[[Output, Output], float]
    label: str
    axis: tuple[float, float]


Points = dict[str, dict[str, dict[int, float]]]
"""Medians by measure, line and gap (or window, or number of queries)."""


def add_arguments(parser: argparse.ArgumentParser, gaps: Sequence[int] = GAPS, seconds: float = 200) -> None:
    """Options that all figures over the stores have. A run of one seed takes a minute or two."""
    parser.add_argument(
        "--gaps",
        action=Numbers,
        nargs="+",
        default=list(gaps),
        help="units between two rows of a stream, on average (default: %(default)s)",
    )
    parser.add_argument(
        "--seeds", type=int, default=1, help="how many, from --seed on; medians are told (default: 1)"
    )
    parser.add_argument(
        "--seconds", type=float, default=seconds, help="of event time, of each run (default: %(default)s)"
    )
    parser.add_argument(
        "--clock",
        choices=("paper", "wall"),
        default="paper",
        help="what an insertion costs beside a visit: the paper's units, or as measured here",
    )
    parser.add_argument(
        "--data",
        choices=DATA,
        default="sales",
        help="two drawn stores, or flights from Newark with LaGuardia's or Kennedy's",
    )
    parser.add_argument(
        "--step-ms",
        type=int,
        default=20,
        help="event time of a step of the engine's parts: its rows come in, then the units that are left of "
        "it are spent (default: %(default)s)",
    )


def seeds(options: argparse.Namespace) -> range:
    """All of them."""
    return range(options.seed, options.seed + max(1, options.seeds))


def rows_of(options: argparse.Namespace, seed: int, gap: float) -> Sales:
    """The rows of a run. Raises SystemExit with the reason where flights are asked for and not installed."""
    if options.data == "sales":
        return draw(seed, options.seconds, gap)
    try:
        return flights.flights(options.data, seed, options.seconds, gap)
    except DataMissing as missing:
        raise SystemExit(f"--data {options.data} is left out: {missing}") from None


def sweep(
    options: argparse.Namespace,
    lines: Mapping[str, Line],
    measures: Mapping[str, Measure],
    window_ms: int,
) -> Points:
    """Each line at each gap."""
    points: Points = {measure: {} for measure in measures}
    for gap in options.gaps:
        found: dict[tuple[str, str], list[float]] = {}
        selectivity: list[float] = []
        for seed in seeds(options):
            rows = rows_of(options, seed, gap)
            whole = exact(rows, window_ms)
            selectivity.append(100 * whole.pairs / max(1, whole.compared))
            for name, line in lines.items():
                output = line.run(rows, window_ms)
                for key, measure in measures.items():
                    found.setdefault((key, name), []).append(measure.of(output, whole))
        for (key, name), values in found.items():
            points[key].setdefault(name, {})[gap] = median(values)
        told = ", ".join(f"{one:.1f}" for one in selectivity)
        print(f"gap {gap}: join selectivity {told}%")
    return points


def compare(
    options: argparse.Namespace,
    lines: Mapping[str, Line],
    measures: Mapping[str, Measure],
    window_ms: int,
    claims: Iterable[Claim],
) -> Report:
    """Each line at each gap, with a table, what must hold, and the paper's axes beside."""
    points = sweep(options, lines, measures, window_ms)
    table(points)
    print_verdicts(claims, points)
    shape(points, measures)
    return report(points, measures)


@dataclass(frozen=True, slots=True)
class Claim:
    """What must hold: a measure of one line is at least so many times that of another, or at most.

    at: the smallest and the largest gap (or window, or number of queries) of which it is said. most: the
    first line's measure is to be at most ``times`` the other's.
    """

    said: str
    measure: str
    line: str
    other: str
    times: float
    at: tuple[float, float] = (0, 1e9)
    most: bool = False

    def verdict(self, points: Points) -> str:
        """A sentence with the ratios."""
        mine, theirs = points[self.measure].get(self.line, {}), points[self.measure].get(self.other, {})
        low, high = self.at
        ratios = {
            place: value / theirs[place]
            for place, value in mine.items()
            if low <= place <= high and theirs.get(place)
        }
        if not ratios:
            return f"not measured: {self.said}"
        held = [ratio <= self.times if self.most else ratio >= self.times for ratio in ratios.values()]
        verdict = "holds" if all(held) else "holds in part" if any(held) else "does not hold"
        listed = ", ".join(f"{ratio:.2f} at {place:g}" for place, ratio in ratios.items())
        return f"{verdict}: {self.said}; {self.line} to {self.other}: {listed}"


def print_verdicts(claims: Iterable[Claim], points: Points) -> None:
    """Print each."""
    for claim in claims:
        print(claim.verdict(points))


def shape(points: Points, measures: Mapping[str, Measure]) -> None:
    """Print the range of each measure beside the paper's axis."""
    for key, measure in measures.items():
        values = [value for over in points[key].values() for value in over.values()]
        low, high = measure.axis
        print(
            f"{measure.label}: {readable(min(values))} to {readable(max(values))} here, "
            f"the paper's axis {low:g} to {high:g}"
        )


def table(points: Points, title: str = "gap") -> None:
    """Print a table of each measure: a row a line, a column a gap."""
    for measure, by_line in points.items():
        places = sorted({place for over in by_line.values() for place in over})
        print(f"\n{measure:<22}" + "".join(f"{f'{title} {place}':>12}" for place in places))
        for name, over in by_line.items():
            print(f"{name:<22}" + "".join(f"{readable(over[p]) if p in over else '':>12}" for p in places))


def report(
    points: Points, measures: Mapping[str, Measure], x_label: str = "mean gap, units", at: str = "gap"
) -> Report:
    """Figures ``<measure>.<line>.<at><place>`` and a plot a measure."""
    figures: dict[str, Figure] = {
        f"{key}.{name}.{at}{place}": value
        for key, by_line in points.items()
        for name, over in by_line.items()
        for place, value in over.items()
    }
    plots = [
        Plot(
            x_label,
            measure.label,
            [Series(name, list(over), list(over.values())) for name, over in points[key].items()],
        )
        for key, measure in measures.items()
    ]
    return Report(figures, plots)


def plots_of(report: Report) -> Sequence[Plot]:
    """Those of a report, to be put beside others."""
    assert report.plot is not None
    return [report.plot] if isinstance(report.plot, Plot) else report.plot
