"""What a benchmark hands back, and how it is shown: one JSON object, a table, or a plot."""

import json
import os
import platform
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

Figure = int | float | np.integer | np.floating

MEASURED_WITH = (
    "tureen",
    "numpy",
    "numba",
    "pyarrow",
    "sqlglot",
    "confluent-kafka",
    "rocksdict",
    "duckdb",
    "polars",
)


@dataclass(frozen=True, slots=True)
class Series:
    """One line of a plot: points (x[i], y[i])."""

    label: str
    x: Sequence[float]
    y: Sequence[float]


@dataclass(frozen=True, slots=True)
class Plot:
    """Series on shared axes; `log` makes both logarithmic."""

    x_label: str
    y_label: str
    series: Sequence[Series]
    log: bool = False


@dataclass(frozen=True, slots=True)
class Report:
    """The figures of one run.

    figures: flat, by dotted keys with the unit in the first part and what was varied after it, as in
        `rows_per_s.q1000`, `engine_ms`.
    plot: what --png draws, several side by side; without one, a bar for each figure.
    """

    figures: Mapping[str, Figure]
    plot: Plot | Sequence[Plot] | None = None


@dataclass(frozen=True, slots=True)
class Run:
    """A report with what is needed to believe and repeat it."""

    bench: str
    seed: int
    report: Report
    machine: Mapping[str, str | int | float] = field(default_factory=lambda: machine())
    versions: Mapping[str, str] = field(default_factory=lambda: versions())

    def as_json(self) -> str:
        """One object; raises ValueError for a figure that is no finite number."""
        figures = {key: _plain(value) for key, value in self.report.figures.items()}
        return json.dumps(
            {
                "bench": self.bench,
                "figures": figures,
                "machine": dict(self.machine),
                "versions": dict(self.versions),
                "seed": self.seed,
            },
            allow_nan=False,
        )

    def print_table(self, console: Console) -> None:
        """The figures, with machine and versions below."""
        table = Table(title=self.bench, title_justify="left")
        table.add_column("figure")
        table.add_column("value", justify="right")
        for key, value in self.report.figures.items():
            table.add_row(key, readable(value))
        console.print(table)
        facts = self.machine
        machine_line = f"{facts['cpu']}, {facts['cores']} cores, {facts['memory_gib']} GiB, {facts['os']}"
        console.print(f"{machine_line}; seed {self.seed}", style="dim", highlight=False)
        version_line = " ".join(f"{name} {version}" for name, version in self.versions.items())
        console.print(version_line, style="dim", highlight=False)

    def write_png(self, path: Path) -> None:
        """Draw the report's plot, or its figures as bars."""
        import matplotlib

        matplotlib.use("Agg")
        from matplotlib import pyplot

        plot = self.report.plot
        if plot is None:
            figures = self.report.figures
            size = (8, 1.2 + 0.35 * len(figures))
            figure, axes = pyplot.subplots(figsize=size, layout="constrained")
            bars = axes.barh(list(figures), [_plain(value) for value in figures.values()])
            axes.bar_label(bars, [readable(value) for value in figures.values()], padding=3)
            axes.margins(x=0.15)
            axes.invert_yaxis()
            axes.set_title(self.bench, loc="left")
        else:
            plots = [plot] if isinstance(plot, Plot) else plot
            lines = -(-len(plots) // 2)
            shape, size = ((1, 1), (8.0, 5.0)) if len(plots) == 1 else ((lines, 2), (11.0, 3.6 * lines))
            figure, every = pyplot.subplots(*shape, figsize=size, layout="constrained", squeeze=False)
            for axes, one in zip(every.flat, plots, strict=False):
                for series in one.series:
                    axes.plot(series.x, series.y, marker="o", label=series.label)
                axes.set(xlabel=one.x_label, ylabel=one.y_label)
                if one.log:
                    axes.set(xscale="log", yscale="log")
                axes.grid(visible=True, alpha=0.3)
                if len(one.series) > 1 or len(plots) == 1:
                    axes.legend()
            every.flat[0].set_title(self.bench, loc="left")
        figure.savefig(path, dpi=120)
        pyplot.close(figure)


def readable(value: Figure) -> str:
    """Four significant digits, thousands apart: 1234567.8 -> 1,235,000; 0.012345 -> 0.01234; counts whole."""
    if isinstance(value, int | np.integer):
        return f"{int(value):,}"
    rounded = float(f"{value:.4g}")
    return f"{rounded:,.0f}" if abs(rounded) >= 1000 else f"{rounded:,g}"


def machine() -> dict[str, str | int | float]:
    """The machine as a reader of the figures wants to know it."""
    memory_bytes = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {
        "cpu": _cpu_model(),
        "cores": os.cpu_count() or 1,
        "memory_gib": round(memory_bytes / 2**30, 1),
        "os": f"{platform.system()} {platform.release()} {platform.machine()}",
    }


def versions() -> dict[str, str]:
    """Versions of Python, Tureen and of what does the work; those not installed are left out."""
    found = {"python": platform.python_version()}
    for name in MEASURED_WITH:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found


def _plain(value: Figure) -> int | float:
    """A numpy scalar as Python's int or float."""
    return int(value) if isinstance(value, int | np.integer) else float(value)


def _cpu_model() -> str:
    if sys.platform == "darwin":
        command = ["sysctl", "-n", "machdep.cpu.brand_string"]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()
