"""An experiment with update patterns: a query by several strategies over windows that grow, compared.

What it prints besides figures are sentences: whether what the paper saw is so here, in the work that was
counted, in what linked lists would have visited, and in time.

Figures, each `.<strategy>.w<units>`: `rows_per_s`; `us_per_1000`; `work_per_1000`, entries of state
visited, inserted, deleted, and negative tuples; `lists_per_1000`, entries that linked lists would have
visited; `state_bytes`, what operators hold beside the rows of the streams, on average; `with_rows_bytes`,
together with these; `changes_per_row`. Each `.w<units>`: `ratio_to_nt`, `ratio_to_direct`, rows a second of
the experiment's strategy; `space_ratio_to_nt`, how many times less state it has. The negative tuple
approach reads who leaves from the windows, which the paper counts; here they are the rows of the streams,
which stand for all queries. `space_ratio_to_nt_with_windows` counts them to NT, and not to the other, which
does without.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from benchmarks.connections import Connections
from benchmarks.report import Figure, Plot, Report, Series
from benchmarks.update_patterns import LABELS, Point, Points, Query, measure_all

Lists = Callable[[str, Connections, int, Point], float]
"""Counts, for a strategy and the rows of a window that was measured, entries that lists visit, per 1,000
rows.
"""

Measures = Mapping[str, Callable[[Point], float]]


@dataclass(frozen=True, slots=True)
class Claim:
    """What the paper saw: that a strategy is better than another, by a factor of least or more.

    measure: "work" or "state"; work is compared in time as well, and in lists. windows: the smallest and the
    largest at which it was seen.
    """

    said: str
    better: str
    worse: str
    least: float = 1.0
    windows: tuple[int, int] = (0, 1 << 60)
    measure: str = "work"


@dataclass(frozen=True, slots=True)
class Experiment:
    """queries: by strategy. subject: the strategy that is compared with NT and DIRECT in ratios."""

    queries: Mapping[str, Query]
    subject: str
    lists: Lists
    claims: Sequence[Claim]

    def run(
        self, options: argparse.Namespace, also: Callable[[int, Connections], None] | None = None
    ) -> Report:
        """Measure, compare, report. also: is told of each window and its rows."""
        rows_of: dict[int, Connections] = {}

        def note(window: int, rows: Connections) -> None:
            rows_of[window] = rows
            if also is not None:
                also(window, rows)

        points = measure_all(self.queries, options, note)
        lists = {
            strategy: {
                window: self.lists(strategy, rows_of[window], window, point) for window, point in over.items()
            }
            for strategy, over in points.items()
        }
        for claim in self.claims:
            for line in compared(claim, points, lists):
                print(line)
        return Report(self._figures(points, lists), plots(points, lists))

    def _figures(self, points: Points, lists: Mapping[str, Mapping[int, float]]) -> dict[str, Figure]:
        figures: dict[str, Figure] = {}
        for strategy, over in points.items():
            for window, point in over.items():
                at = f"{strategy}.w{window}"
                figures[f"rows_per_s.{at}"] = point.rows_per_s
                figures[f"spread.{at}"] = point.spread
                figures[f"us_per_1000.{at}"] = point.us_per_1000
                figures[f"work_per_1000.{at}"] = point.work.total
                figures[f"visited_per_1000.{at}"] = point.work.visited
                figures[f"negative_per_1000.{at}"] = point.work.negative
                figures[f"lists_per_1000.{at}"] = lists[strategy][window]
                figures[f"state_bytes.{at}"] = point.state_bytes
                figures[f"with_rows_bytes.{at}"] = point.state_bytes + point.stem_bytes
                figures[f"changes_per_row.{at}"] = point.came + point.went
        for window, point in points.get(self.subject, {}).items():
            for other in ("nt", "direct"):
                if self.subject != other and window in points.get(other, {}):
                    against = points[other][window]
                    figures[f"ratio_to_{other}.w{window}"] = point.rows_per_s / against.rows_per_s
                    if other == "nt":
                        held = max(1.0, point.state_bytes)
                        figures[f"space_ratio_to_nt.w{window}"] = against.state_bytes / held
                        figures[f"space_ratio_to_nt_with_windows.w{window}"] = (
                            against.state_bytes + against.stem_bytes
                        ) / held
        return figures


def compared(claim: Claim, points: Points, lists: Mapping[str, Mapping[int, float]]) -> list[str]:
    """A sentence for each way to compare."""
    better, worse = points.get(claim.better, {}), points.get(claim.worse, {})
    low, high = claim.windows
    windows = [window for window in better if window in worse and low <= window <= high]
    if not windows:
        return [f"not measured: {claim.said}"]
    ratios: dict[str, dict[int, float]] = {}
    if claim.measure == "state":
        ratios["state"] = {w: worse[w].state_bytes / max(1.0, better[w].state_bytes) for w in windows}
        ratios["state with windows"] = {
            w: (worse[w].state_bytes + worse[w].stem_bytes) / max(1.0, better[w].state_bytes) for w in windows
        }
    else:
        ratios["work"] = {w: worse[w].work.total / max(1.0, better[w].work.total) for w in windows}
        ratios["lists"] = {w: lists[claim.worse][w] / max(1.0, lists[claim.better][w]) for w in windows}
        ratios["time"] = {w: better[w].rows_per_s / worse[w].rows_per_s for w in windows}
    lines = []
    for measure, by_window in ratios.items():
        holds = [ratio >= claim.least for ratio in by_window.values()]
        verdict = "agrees" if all(holds) else "agrees in part" if any(holds) else "does not agree"
        found = ", ".join(f"{ratio:.2g} at {window:,}" for window, ratio in by_window.items())
        lines.append(
            f"{verdict} in {measure}: {claim.said}; {LABELS[claim.worse]} to {LABELS[claim.better]}: {found}"
        )
    return lines


def plots(points: Points, lists: Mapping[str, Mapping[int, float]]) -> list[Plot]:
    """Time, work, state, and what lists would have visited, over the window."""
    shown: Sequence[tuple[str, Callable[[str, int, Point], float]]] = (
        ("us per 1,000 rows", lambda _, __, point: point.us_per_1000),
        ("work per 1,000 rows", lambda _, __, point: point.work.total),
        ("state, bytes", lambda _, __, point: max(1.0, point.state_bytes)),
        ("lists' visits per 1,000 rows", lambda strategy, window, _: lists[strategy][window]),
    )
    return [
        Plot(
            "window, units",
            label,
            [
                Series(LABELS[strategy], list(over), [of(strategy, *each) for each in over.items()])
                for strategy, over in points.items()
            ],
            log=True,
        )
        for label, of in shown
    ]
