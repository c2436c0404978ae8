"""Functions in processes of their own: whatever they do there, other rows get their values, and soon."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.runtime.functions import facts, load
from broker.runtime.isolated_functions import IsolatedFunctions
from engine.language.evaluation.user_calls import called
from engine.language.functions import FunctionCatalogue
from engine.model.batch import Column
from engine.model.expressions import UserFunction
from engine.model.interruption import CalledOff, interruptible
from engine.model.types import BIGINT
from tests.kafka import wait_until

MODULE = '''
"""Values say what is done: -1 ends the process, -2 does not return, and others."""

import os
import signal
import time

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import tureen


def act(value):
    if value == -1:
        os._exit(3)
    if value == -2:
        while True:
            pass
    if value == -3:
        time.sleep(100)
    if value == -4:
        os.kill(os.getpid(), signal.SIGSEGV)
    if value == -5:
        raise ValueError("no")
    if value == -6:
        return "text"
    if value == -7:
        return len(bytearray(1 << 40))
    if value == -8:
        raise SystemExit(2)
    return value * 2


one = dict(arguments=["BIGINT"], returns="BIGINT", isolated=True)


@tureen.function(**one)
def scalar(value):
    return act(value)


@tureen.function(**one, vectorised=True)
def numpy_way(values):
    found = [act(int(value)) for value in values]
    return found[1:] if any(value == 7_777 for value in values) else found


@tureen.function(**one, vectorised="arrow")
def arrow_way(values):
    found = [act(value.as_py()) for value in values]
    return pa.array(found, pa.string() if "text" in found else pa.int64())


@tureen.function(**one, deterministic=True)
def alike(value):
    return act(value)


@tureen.function(**one)
def slow(value):
    time.sleep(0.001)
    return value


@tureen.function(**one)
def process(value):
    return os.getpid()


@tureen.function(arguments=["BIGINT"], returns="STRING", isolated=True)
def surroundings(value):
    names = sorted(name for name in os.environ if name.startswith("TUREEN"))
    numbers = [number for number in os.listdir("/proc/self/fd") if int(number) > 2]
    files = [f"/proc/self/fd/{number}" for number in numbers if os.path.lexists(f"/proc/self/fd/{number}")]
    kinds = sorted(os.readlink(file).split(":")[0] for file in files)
    return f"{names} {[one for one in kinds if not one.startswith('/tmp/#')]}"


@tureen.function(arguments=["BIGINT"], returns="BOOLEAN", isolated=True)
def starts_another(value):
    if os.fork() == 0:
        time.sleep(100)
    while True:
        pass


@tureen.function(
    arguments=["INTEGER", "BIGINT", "DOUBLE", "DECIMAL(10, 2)", "STRING", "BOOLEAN", "DATE", "TIMESTAMP"],
    returns="STRING", isolated=True)
def all_types(*values):
    return None if values[5] else repr(values)


@tureen.function(arguments=["DOUBLE", "STRING"], returns="DOUBLE", isolated=True, vectorised=True)
def number(x, text):
    if (text == "raise").any():
        raise ValueError
    return np.where(text == "nan", np.nan, x)
'''

FUNCTIONS = ("SCALAR", "NUMPY_WAY", "ARROW_WAY")


def catalogue(modules: Path, **settings: int) -> tuple[IsolatedFunctions, FunctionCatalogue]:
    limits = {"call_ms": 200, "memory_bytes": 512 << 20, "processes": 2} | settings
    isolated = IsolatedFunctions(["isolated_ones"], modules, **limits)
    return isolated, load(["isolated_ones"], modules, isolated.caller)


@pytest.fixture(scope="module")
def modules(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    before = [*sys.path]
    directory = tmp_path_factory.mktemp("modules")
    (directory / "isolated_ones.py").write_text(MODULE)
    yield directory
    sys.path[:] = before
    sys.modules.pop("isolated_ones", None)


@pytest.fixture(scope="module")
def processes(modules: Path) -> Iterator[IsolatedFunctions]:
    isolated, _ = catalogue(modules)
    isolated.start()
    yield isolated
    isolated.stop()


@pytest.fixture
def functions(modules: Path, processes: IsolatedFunctions) -> dict[str, UserFunction]:
    """They lost no time before."""
    return {one.name: one for one in load(["isolated_ones"], modules, processes.caller).users}


def asked(function: UserFunction, values: Sequence[int]) -> tuple[list[Any], dict[str, int]]:
    """(results, "error" where failed; failed rows by reason)."""
    assert function.run is not None
    outcome = function.run([Column(BIGINT, np.array(values, np.int64))])
    assert len(outcome.failed) == len(values)
    found = outcome.results.to_arrow().to_pylist()
    results = ["error" if failed else value for value, failed in zip(found, outcome.failed, strict=True)]
    assert outcome.reasons.total() == results.count("error")
    return results, dict(outcome.reasons)


def doubled(values: Sequence[int]) -> list[Any]:
    return ["error" if value < 0 else value * 2 for value in values]


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize(
    ("act", "reason"),
    [
        (-1, "crashed"),
        (-2, "late"),
        (-3, "late"),
        (-4, "crashed"),
        (-5, "raised"),
        (-6, "mistyped"),
        (-7, "raised"),
        (-8, "raised"),
    ],
)
def test_one_row_errs_and_the_others_have_their_values_within_a_second(
    functions: dict[str, UserFunction], name: str, act: int, reason: str
) -> None:
    values = [*range(300), act, *range(300, 900)]
    asked(functions[name], [1])  # what is measured is not the start
    began_s = time.monotonic()
    found = asked(functions[name], values)
    spent_s = time.monotonic() - began_s
    assert found == (doubled(values), {reason: 1})
    assert spent_s < 1.0 + slack(reason)
    assert asked(functions[name], [5]) == ([10], {})


def slack(reason: str) -> float:
    """On a machine that does something else as well."""
    return 2.0 if reason in ("late", "crashed") else 1.0


def test_too_few_values_are_errors(functions: dict[str, UserFunction]) -> None:
    assert asked(functions["NUMPY_WAY"], [1, 7_777, 3]) == ([2, "error", 6], {"mistyped": 1})


@pytest.mark.parametrize("name", ["SCALAR", "ARROW_WAY"])
def test_a_function_that_hangs_again_and_again_rests(modules: Path, name: str) -> None:
    isolated, found = catalogue(modules, call_ms=50)
    (function,) = (one for one in found.users if one.name == name)
    isolated.start()
    values = [1, 2, 3, -2, 4, *[-2] * 200]
    asked(function, [1])
    began_s = time.monotonic()
    results, reasons = asked(function, values)
    assert time.monotonic() - began_s < 3.0  # without rest it would be over twenty
    assert results[:4] == [2, 4, 6, "error"]
    assert results[5:] == ["error"] * 200
    assert reasons["late"] <= 4
    assert reasons["resting"] >= 190
    assert asked(function, [1]) == (["error"], {"resting": 1})
    (one,) = (one for one in facts(found) if one["name"] == name)
    assert (one["rests"], one["isolated"]) == (True, True)
    wait_until(lambda: asked(function, [1]) == ([2], {}), 30.0)
    isolated.stop()


def test_arguments_for_which_a_deterministic_function_failed_are_remembered(
    functions: dict[str, UserFunction],
) -> None:
    alike = functions["ALIKE"]
    assert asked(alike, [1, -2, 3]) == ([2, "error", 6], {"late": 1})
    assert asked(alike, [-1]) == (["error"], {"crashed": 1})
    values = [*range(50), -1, -2, -5, 50] * 20
    began_s = time.monotonic()
    results, reasons = asked(alike, values)
    assert time.monotonic() - began_s < 0.2 + 1.0  # twenty calls that hang would be eight seconds
    assert results == doubled(values)
    assert reasons == {"late": 20, "crashed": 20, "raised": 20}
    assert asked(alike, [-2, -1]) == (["error", "error"], {"late": 1, "crashed": 1})


@given(values=st.lists(st.sampled_from([0, 1, 2, 7, -1, -4, -5, -6, -8]), max_size=40))
def test_what_ends_a_process_is_an_error_as_what_raises(
    patient: dict[str, UserFunction], values: list[int]
) -> None:
    if not values:
        return
    for name in FUNCTIONS:
        results, reasons = asked(patient[name], values)
        assert results == doubled(values)
        assert reasons.get("crashed", 0) == sum(value in (-1, -4) for value in values)


@pytest.fixture(scope="module")
def patient(modules: Path) -> Iterator[dict[str, UserFunction]]:
    """Functions that may lose minutes."""
    isolated, found = catalogue(modules, call_ms=30_000)
    isolated.start()
    yield {one.name: one for one in found.users}
    isolated.stop()


rows = st.tuples(
    st.integers(-(2**31), 2**31 - 1),
    st.integers(-(2**63), 2**63 - 1),
    st.floats(),
    st.decimals(-9999, 9999, places=2),
    st.text(max_size=4),
    st.booleans(),
    st.dates(),
    st.datetimes().map(lambda one: one.replace(microsecond=one.microsecond // 1000 * 1000)),
)


@given(given_rows=st.lists(rows, min_size=1, max_size=30))
def test_values_of_all_types_go_there_and_back(
    patient: dict[str, UserFunction], given_rows: list[tuple[Any, ...]]
) -> None:
    same(patient["ALL_TYPES"], given_rows)
    texts = ["nan", "raise", "", "x"]
    same(patient["NUMBER"], [(row[2], texts[len(row[4]) % 4]) for row in given_rows])


def same(function: UserFunction, given_rows: Sequence[tuple[Any, ...]]) -> None:
    """Called there and here it comes to the same."""
    assert function.run is not None
    columns = [
        Column.from_arrow(type_, pa.array(values, type_.arrow))
        for type_, values in zip(function.arguments, zip(*given_rows, strict=True), strict=True)
    ]
    there, here = function.run(columns), called(function, columns)
    assert there.results.to_arrow().to_string() == here.results.to_arrow().to_string()
    assert there.failed.tolist() == here.failed.tolist()
    assert (there.reasons, there.told) == (here.reasons, here.told)


@pytest.mark.parametrize("whom", ["process", "parent"])
def test_a_kill_amid_a_batch_costs_no_row(functions: dict[str, UserFunction], whom: str) -> None:
    ((number,), _) = asked(functions["PROCESS"], [1])
    parent = parent_of(number)
    found: list[Any] = []
    thread = threading.Thread(target=lambda: found.append(asked(functions["SLOW"], range(600))))
    thread.start()
    time.sleep(0.1)
    for victim in children_of(parent) if whom == "process" else [parent]:
        os.kill(victim, signal.SIGKILL)
    thread.join(30.0)
    assert found == [(list(range(600)), {})]


def test_one_that_waits_for_a_call_that_hangs_can_be_called_off(functions: dict[str, UserFunction]) -> None:
    until_s = time.monotonic() + 0.05

    def check() -> None:
        if time.monotonic() > until_s:
            raise CalledOff

    ((number,), _) = asked(functions["PROCESS"], [1])
    with pytest.raises(CalledOff), interruptible(check):
        asked(functions["SLOW"], range(10_000))
    assert asked(functions["SCALAR"], [4]) == ([8], {})
    wait_until(lambda: len(children_of(parent_of(number) or 0)) <= 2, 5.0)


def test_others_call_while_one_hangs(functions: dict[str, UserFunction]) -> None:
    asked(functions["NUMPY_WAY"], [1])
    thread = threading.Thread(target=lambda: asked(functions["SCALAR"], [-3]))
    thread.start()
    time.sleep(0.05)
    assert asked(functions["NUMPY_WAY"], [4]) == ([8], {})
    assert thread.is_alive()
    thread.join(30.0)


def test_a_process_has_no_settings_and_no_files_of_the_worker(
    modules: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TUREEN_INTERNAL_SECRET", "secret")
    isolated, found = catalogue(modules)
    (function,) = (one for one in found.users if one.name == "SURROUNDINGS")
    ((told,), _) = asked(function, [1])
    assert told == "[] ['socket']"  # the notes' file has no name
    isolated.stop()


def test_what_a_process_started_ends_with_it(functions: dict[str, UserFunction]) -> None:
    ((number,), _) = asked(functions["PROCESS"], [1])
    parent = parent_of(number)
    assert asked(functions["STARTS_ANOTHER"], [1]) == (["error"], {"late": 1})
    group = {child for child in below(parent) if parent_of(child) != parent}
    wait_until(lambda: not any(is_there(one) for one in group), 5.0)
    assert len(below(parent)) <= 2


def test_they_end_with_the_worker(modules: Path) -> None:
    text = (
        "import os, sys; from pathlib import Path\n"
        "from tests.broker.runtime.isolated_functions_test import catalogue, asked\n"
        "isolated, found = catalogue(Path(sys.argv[1])); isolated.start()\n"
        "one = next(one for one in found.users if one.name == 'PROCESS')\n"
        "print(asked(one, [1])[0][0], flush=True); sys.stdin.read()\n"
    )
    worker = subprocess.Popen(
        [sys.executable, "-c", text, str(modules)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert worker.stdout is not None
    number = int(next(line for line in worker.stdout if line.strip().isdigit()))
    parent = parent_of(number)
    worker.kill()
    worker.wait()
    wait_until(lambda: not is_there(number) and not is_there(parent), 10.0)


def is_there(number: int) -> bool:
    try:
        return "\nState:\tZ" not in Path(f"/proc/{number}/status").read_text()
    except OSError:
        return False


def parent_of(number: int) -> int:
    return int(Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()[1])


def children_of(number: int) -> list[int]:
    return [int(one) for one in Path(f"/proc/{number}/task/{number}/children").read_text().split()]


def below(number: int) -> list[int]:
    found = children_of(number)
    return found + [one for child in found for one in below(child)]
