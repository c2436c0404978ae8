"""Finds benchmarks and runs one.

A benchmark is a file of this folder with a function `run(options) -> Report`, called by its file's name
with `-` for `_`. It may offer `add_arguments(parser)` for options of its own. Its docstring's first line says
what it measures, and the rest what to compare with. All randomness comes from `options.seed`.

    python -m benchmarks                        the list
    python -m benchmarks selections             a table
    python -m benchmarks selections --json      one object, alone on standard output
    python -m benchmarks selections --png F     a plot too

Whatever a benchmark prints while it runs goes to standard error.
"""

import argparse
import ast
import contextlib
import importlib
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

from rich.console import Console

from benchmarks.report import Run
from broker.runtime.garbage import collect_seldom

FOLDER = Path(__file__).parent


@dataclass(frozen=True, slots=True)
class Bench:
    """A benchmark that was found and not yet imported."""

    module: str
    summary: str


def find(folder: Path) -> dict[str, Bench]:
    """A package's benchmarks by name; files are parsed and not run, since compiling kernels is slow."""
    benches = {}
    for path in sorted(folder.glob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"), str(path))
        if any(isinstance(node, ast.FunctionDef) and node.name == "run" for node in tree.body):
            summary = (ast.get_docstring(tree) or "").partition("\n")[0]
            benches[path.stem.replace("_", "-")] = Bench(f"{folder.name}.{path.stem}", summary)
    return benches


def main(arguments: Sequence[str], folder: Path = FOLDER) -> int:
    """List the benchmarks of a package, or run one; returns the exit code."""
    benches = find(folder)
    if not arguments or arguments[0] in ("-h", "--help"):
        _print_list(benches)
        return 0
    name, *rest = arguments
    if name not in benches:
        print(f"No benchmark {name!r} here; there are: {', '.join(benches) or 'none'}", file=sys.stderr)
        return 2
    collect_seldom()  # as the broker's processes do
    module = importlib.import_module(benches[name].module)
    options = _parser(name, module).parse_args(rest)
    with contextlib.redirect_stdout(sys.stderr):
        report = module.run(options)
    run = Run(bench=name, seed=options.seed, report=report)
    if options.json:
        print(run.as_json())
    else:
        run.print_table(Console())
    if options.png is not None:
        run.write_png(options.png)
    return 0


def _parser(name: str, module: ModuleType) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=f"python -m benchmarks {name}",
        description=module.__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of a table")
    parser.add_argument("--png", type=Path, metavar="FILE", help="write a plot")
    parser.add_argument("--seed", type=int, default=1, help="of all random choices (default: %(default)s)")
    if hasattr(module, "add_arguments"):
        module.add_arguments(parser)
    return parser


def _print_list(benches: Mapping[str, Bench]) -> None:
    print("python -m benchmarks NAME [--json] [--png FILE] [--seed N] [options of its own: NAME --help]\n")
    width = max((len(name) for name in benches), default=0)
    for name, bench in benches.items():
        print(f"  {name:<{width}}  {bench.summary}")
