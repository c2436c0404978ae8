"""Runs `JoinHarness.java`: standing joins over named windows that all queries share.

The windows hold each stream's last rows, whatever a query's predicates, as `[ROWS n]` does; a filter before
`#length` would be another window. The predicates are filters of a query on the shared windows, `W0(v in
[lo:hi)) as s0`, which is five times as fast as the same in WHERE; their constants are parameters, so that
texts that name the same streams are compiled once. Every match is handed to the listener of its query, which
counts.
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import numpy as np
import numpy.typing as npt

from benchmarks.joined import VALUES, Rows
from benchmarks.peers.esper.process import Esper
from benchmarks.psoup import Bounds

HARNESS = Path(__file__).with_name("JoinHarness.java")
PASSES = 3


@dataclass(frozen=True, slots=True)
class JoinRun:
    """counts: int64[queries], matches of the last pass, of ``rows`` rows after ``begin`` of them; answers:
    how many combinations each of the first queries held at its end.
    """

    rows: int
    begin: int
    pass_s: float
    deploy_s: float
    counts: npt.NDArray[np.int64]
    answers: npt.NDArray[np.int64]

    @property
    def rows_per_s(self) -> float:
        """Rows a second in the middle pass."""
        return self.rows / self.pass_s


def run_joins(esper: Esper, rows: Rows, bounds: Bounds, window: int, seconds: float, looked: int) -> JoinRun:
    """Fill the windows, deploy, warm up for `seconds`, send rows in passes of about as long.

    esper: of HARNESS. bounds: int64[queries, ways, 2]. looked: how many queries' answers are counted.
    """
    with tempfile.TemporaryDirectory(prefix="tureen-esper-") as name:
        directory = Path(name)
        np.stack([rows.k, rows.v]).astype("<i4").tofile(directory / "rows")
        (directory / "queries").write_text("\n".join(map(epl, bounds)) + "\n", encoding="ascii")
        arguments = (rows.ways, window, seconds, PASSES, looked)
        facts = esper.start(name, *map(str, arguments))
        counts = np.fromfile(directory / "counts", ">i8").astype(np.int64)
        answers = np.fromfile(directory / "answers", ">i8").astype(np.int64)
    return JoinRun(
        int(facts["rows"][0]),
        int(facts["begin"][0]),
        median(facts["pass_s"]),
        facts["deploy_s"][0],
        counts,
        answers,
    )


def epl(bounds: Bounds) -> str:
    """A query as the harness reads it: EPL with parameters, and their values behind tabs."""
    windows, values = [], ""
    for place, (lo, hi) in enumerate(bounds.tolist()):
        asked = (lo, hi) != (0, VALUES)
        windows.append(f"W{place}{'(v in [?::int:?::int))' if asked else ''} as s{place}")
        values += f"\t{lo}\t{hi}" if asked else ""
    keys = " and ".join(f"s{place - 1}.k = s{place}.k" for place in range(1, len(bounds)))
    return f"select * from {', '.join(windows)} where {keys}{values}"
