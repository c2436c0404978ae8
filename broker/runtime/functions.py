"""Users' functions, found and loaded when a broker starts.

Two places are looked at: entry points of the group ``tureen.functions``, each a function or a module, and the
modules that the setting ``functions`` names. Those are looked for in Python's environment, and last in the
directory of the setting ``functions_path``, where the broker was started unless it is set. The directory
comes behind everything that is installed, so no file in it takes the place of another module; without
``functions`` it is not looked at. What :func:`tureen.function` declared in them can be called by SQL. One
that cannot be loaded stops the broker: queries that call it could not run.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from importlib import import_module
from importlib.metadata import entry_points
from pathlib import Path
from time import perf_counter_ns
from types import ModuleType
from typing import Any, Protocol

from broker.runtime.call_times import CALL_TIMES
from engine.language.functions import FunctionCatalogue
from engine.language.user_functions import user_function
from engine.model.batch import Column
from engine.model.expressions import UserFunction
from engine.model.user_calls import CallOutcome, FunctionMeter
from topics.private import check_code
from tureen.errors import QueryError, SettingsError
from tureen.udf import FunctionDeclaration, declaration_of

GROUP = "tureen.functions"


class Caller(Protocol):
    """Calls one function elsewhere."""

    def __call__(self, columns: Sequence[Column]) -> CallOutcome:
        """For rows that have values; there is at least one."""

    @property
    def rests(self) -> bool:
        """Whether it is not called for a while, since it lost too much time."""


def load(
    modules: Sequence[str], directory: Path, isolate: Callable[[UserFunction], Caller] | None = None
) -> FunctionCatalogue:
    """All functions there are, the built-in ones among them. directory: where modules are looked for last; it
    stays on ``sys.path``, since a function may import when it is called. isolate: what calls a function that
    is declared ``isolated``; None: it is called in this process.

    Raises SettingsError for a module or an entry point that cannot be loaded, one without functions, a
    function whose types or name will not do, and a name that two functions have; DirectoryNotPrivate for a
    directory that every user of the machine can write.
    """
    for name in modules:
        if not all(part.isidentifier() for part in name.split(".")):
            raise SettingsError(
                f"TUREEN_FUNCTIONS: {name!r} is no module's name",
                hint="write names as behind import, with commas between them: shapes, mine.shapes; the file "
                "shapes.py is the module shapes, and TUREEN_FUNCTIONS_PATH its directory",
            )
    if modules:
        _look_last(directory)
    found: dict[int, tuple[str, FunctionDeclaration]] = {}
    for point in entry_points(group=GROUP):
        for one in _declared(_loaded(f"entry point {point.name}", point.load), f"entry point {point.name}"):
            found[id(one)] = (f"{point.module}", one)
    for name in modules:
        module = _loaded(f"module {name}", lambda name=name: import_module(name))
        for one in _declared(module, f"module {name} ({getattr(module, '__file__', None) or 'built in'})"):
            found[id(one)] = (name, one)
    functions: dict[str, tuple[str, UserFunction]] = {}
    for where, declaration in found.values():
        function = _understood(where, declaration)
        if declaration.isolated and isolate is not None:
            function = replace(function, run=isolate(function))
        other, _ = functions.setdefault(function.name, (where, function))
        if functions[function.name][1] is not function:
            raise SettingsError(
                f"{where} and {other} both declare the function {function.name}",
                hint="give one of them another name: @tureen.function(..., name='...')",
            )
    try:
        return FunctionCatalogue(function for _, function in functions.values())
    except ValueError as refused:
        raise SettingsError(str(refused), hint="@tureen.function(..., name='...') gives it another") from None


def _look_last(directory: Path) -> None:
    """Have modules found in the directory that are nowhere else."""
    try:
        check_code(directory)
    except OSError as failed:
        raise SettingsError(
            f"functions_path={directory} cannot be used: {failed.strerror}",
            hint="set TUREEN_FUNCTIONS_PATH to the directory of the modules that TUREEN_FUNCTIONS names",
        ) from None
    real = directory.resolve()
    if str(real) not in sys.path:
        sys.path.append(str(real))


def _loaded(what: str, load: Any) -> Any:
    try:
        return load()
    except Exception as failed:
        raise SettingsError(
            f"{what}, which is to have functions for SQL, cannot be loaded: {failed!r}",
            hint="correct it, or remove it from TUREEN_FUNCTIONS; modules are taken from the broker's Python "
            "environment, then in TUREEN_FUNCTIONS_PATH (by default where the broker is started)",
        ) from failed


def _declared(loaded: Any, what: str) -> Iterator[FunctionDeclaration]:
    values = list(vars(loaded).values()) if isinstance(loaded, ModuleType) else [loaded]
    declarations = [one for one in map(declaration_of, values) if one is not None]
    if not declarations:
        raise SettingsError(
            f"{what} declares no function for SQL",
            hint='write @tureen.function(arguments=["DOUBLE"], returns="DOUBLE") above one; if this is not '
            "the module you mean, give yours a name that no installed module has",
        )
    yield from declarations


def _understood(where: str, declaration: FunctionDeclaration) -> UserFunction:
    try:
        return user_function(
            declaration.name,
            declaration.arguments,
            declaration.returns,
            declaration.call,
            vectorised=bool(declaration.vectorised),
            deterministic=declaration.deterministic,
            arrow=declaration.vectorised == "arrow",
            meter=FunctionMeter(perf_counter_ns, threading.Lock(), CALL_TIMES.add),
        )
    except QueryError as refused:
        raise SettingsError(
            f"function {declaration.name} of {where}: {refused.message}",
            hint=refused.hint or "types are named as in CREATE STREAM",
        ) from None


def facts(catalogue: FunctionCatalogue) -> list[dict[str, Any]]:
    """The users' functions as lists show them, with what is counted of their calls in this process.

    rows: that they were called for. row_ns: what one takes lately, null where nothing was measured. errors:
    how many rows failed, by reason. last_error: of the last of them, without values of rows. rests: it is
    isolated and not called for a while.
    """
    return [
        {
            "name": one.name,
            "arguments": [str(argument) for argument in one.arguments],
            "returns": str(one.result),
            "vectorised": one.vectorised,
            "arrow": one.arrow,
            "deterministic": one.deterministic,
            "isolated": one.run is not None,
            "rests": bool(getattr(one.run, "rests", False)),
            "rows": one.meter.rows,
            "row_ns": one.meter.cost_ns,
            "errors": dict(one.meter.errors),
            "last_error": one.meter.told,
        }
        for one in catalogue.users
    ]


def counted(one: dict[str, Any]) -> str:
    """What is counted of a function's calls, in words; empty where it was not called. one: of facts()."""
    if not one["rows"]:
        return ""
    row_us = 0.0 if one["row_ns"] is None else one["row_ns"] / 1_000
    cost = f", {row_us:,.0f} µs each" if row_us >= 100 else f", {row_us:.3g} µs each" if row_us else ""
    errors = "".join(f", {count:,} {reason}" for reason, count in sorted(one["errors"].items()))
    last = f" (last: {one['last_error']})" if one["last_error"] else ""
    return f"{one['rows']:,} rows{cost}{errors}{last}"
