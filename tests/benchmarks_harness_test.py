"""The benchmark runner: finding, running, the printed object, the table and the plot, and timing."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from benchmarks import harness
from benchmarks.report import Report, Run, readable
from benchmarks.timing import Timing, repeat

TINY = '''
"""Adds numbers up.

More that the list doesn't show.
"""
from benchmarks.report import Plot, Report, Series

def add_arguments(parser):
    parser.add_argument("--rows", type=int, default=10)

def run(options):
    print("a line for whoever watches")
    figures = {"sum.all": options.rows + options.seed, "mean_ms": 0.5}
    return Report(figures, Plot("rows", "sum", [Series("all", [1, 2], [3, 4])], log=True))
'''

Main = Callable[..., int]


@pytest.fixture
def main(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Main:
    # A package name of its own for each test, since imported modules stay.
    folder = tmp_path / f"benches_{request.node.name}".replace("[", "_").replace("]", "")
    folder.mkdir()
    (folder / "__init__.py").write_text('"""Tiny ones."""\n')
    (folder / "adds_up.py").write_text(TINY)
    (folder / "workload.py").write_text('"""Shared rows, no benchmark."""\ndef rows():\n    return []\n')
    monkeypatch.syspath_prepend(str(tmp_path))
    return lambda *arguments: harness.main(arguments, folder)


def test_list_shows_each_first_line(main: Main, capsys: pytest.CaptureFixture[str]) -> None:
    assert main() == 0
    shown = capsys.readouterr().out
    assert "[--json]" in shown
    assert "adds-up" in shown
    assert "Adds numbers up." in shown
    assert "More that" not in shown
    assert "workload" not in shown


def test_json_is_the_only_thing_on_standard_output(main: Main, capsys: pytest.CaptureFixture[str]) -> None:
    assert main("adds-up", "--json", "--seed", "7", "--rows", "100") == 0
    captured = capsys.readouterr()
    printed = json.loads(captured.out)
    assert list(printed) == ["bench", "figures", "machine", "versions", "seed"]
    assert printed["bench"] == "adds-up"
    assert printed["figures"] == {"sum.all": 107, "mean_ms": 0.5}
    assert printed["seed"] == 7
    assert set(printed["machine"]) == {"cpu", "cores", "memory_gib", "os"}
    assert printed["machine"]["cores"] >= 1
    assert printed["machine"]["memory_gib"] > 0
    assert {"python", "tureen", "numpy", "pyarrow"} <= set(printed["versions"])
    assert "a line for whoever watches" in captured.err


def test_without_json_a_table(main: Main, capsys: pytest.CaptureFixture[str]) -> None:
    assert main("adds-up", "--rows", "41") == 0
    shown = capsys.readouterr().out
    assert "sum.all" in shown
    assert "42" in shown
    assert "seed 1" in shown


def test_plot_is_written(main: Main, tmp_path: Path) -> None:
    assert main("adds-up", "--png", str(tmp_path / "plot.png")) == 0
    assert (tmp_path / "plot.png").read_bytes().startswith(b"\x89PNG")


def test_a_report_without_a_plot_is_drawn_as_bars(tmp_path: Path) -> None:
    Run("bars", 1, Report({"a_ms": 1.5, "b_ms": np.float64(2)})).write_png(tmp_path / "bars.png")
    assert (tmp_path / "bars.png").read_bytes().startswith(b"\x89PNG")


def test_unknown_name_tells_which_there_are(main: Main, capsys: pytest.CaptureFixture[str]) -> None:
    assert main("adds-down") == 2
    assert "adds-up" in capsys.readouterr().err


def test_numpy_figures_are_printed_as_plain_numbers() -> None:
    printed = Run("b", 1, Report({"count": np.int64(3), "ms": np.float32(0.5)})).as_json()
    assert json.loads(printed)["figures"] == {"count": 3, "ms": 0.5}


def test_a_figure_that_is_no_number_is_refused() -> None:
    with pytest.raises(ValueError, match="JSON compliant"):
        Run("b", 1, Report({"ms": float("nan")})).as_json()


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1234567.8, "1,235,000"),
        (0.012345, "0.01235"),
        (1_000_001, "1,000,001"),
        (12.3456, "12.35"),
        (0.0, "0"),
    ],
)
def test_readable_numbers(value: float, text: str) -> None:
    assert readable(value) == text


def test_timing_takes_the_median_and_leaves_the_warm_up_out() -> None:
    # Each pair of ticks is one call: the warm-up of 100 s, then 1, 2 and 9 s.
    ticks = iter([0.0, 100.0, 100.0, 101.0, 101.0, 103.0, 103.0, 112.0])
    calls: list[str] = []
    timing = repeat(
        lambda: calls.append("call"),
        times=3,
        prepare=lambda: calls.append("prepare"),
        clock=lambda: next(ticks),
    )
    assert timing.seconds == (1.0, 2.0, 9.0)
    assert timing.median_s == 2.0
    assert timing.median_ms == 2000.0
    assert timing.per_s(10) == 5.0
    assert calls == ["prepare", "call"] * 4


def test_spread_is_the_distance_of_the_quartiles() -> None:
    assert Timing((1.0, 2.0, 3.0, 4.0, 5.0)).spread == pytest.approx(2 / 3)
    assert Timing((1.0,)).spread == 0.0
