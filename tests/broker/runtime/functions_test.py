"""Users' functions: found by setting and entry point, refused with what to do, called by queries."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from broker.runtime.functions import counted, facts, load
from tests.broker.conftest import stream_sql
from tests.broker.running import READY_S, Broker
from tests.kafka import wait_until
from tureen.errors import DirectoryNotPrivate, SettingsError

BASE_MS = 1_700_000_000_000

FUNCTIONS = """
import numpy as np
import tureen

@tureen.function(arguments=["DOUBLE", "DOUBLE"], returns="DOUBLE", vectorised=True, deterministic=True)
def distance(x, y):
    return np.hypot(x, y)

@tureen.function(arguments=["BIGINT"], returns="STRING", name="roman")
def to_roman(value):
    if value > 3:
        raise ValueError("too many")
    return "I" * value

limit = 3
"""

FRAGILE = """
import os
import time

@tureen.function(arguments=["BIGINT"], returns="BIGINT", isolated=True, deterministic=True)
def fragile(value):
    if value == 1:
        os._exit(1)
    if value == 3:
        time.sleep(1_000)
    return 10 * value

@tureen.function(arguments=["BIGINT"], returns="BOOLEAN", deterministic=True)
def slow(value):
    time.sleep(0.002)
    return value % 2 == 0
"""


UNCALLED = {
    "isolated": False,
    "rests": False,
    "rows": 0,
    "row_ns": None,
    "errors": {},
    "last_error": None,
}


@pytest.fixture
def modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A directory of modules, as beside a broker's start; what tests import of it is forgotten."""
    monkeypatch.setattr(sys, "path", [*sys.path])
    before = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - before:
        del sys.modules[name]


def test_modules_are_loaded(modules: Path) -> None:
    (modules / "shapes.py").write_text(FUNCTIONS)
    (modules / "again.py").write_text("from shapes import distance")
    assert facts(load(["shapes", "again"], modules)) == [
        {
            "name": "DISTANCE",
            "arguments": ["DOUBLE", "DOUBLE"],
            "returns": "DOUBLE",
            "vectorised": True,
            "arrow": False,
            "deterministic": True,
        }
        | UNCALLED,
        {
            "name": "ROMAN",
            "arguments": ["BIGINT"],
            "returns": "STRING",
            "vectorised": False,
            "arrow": False,
            "deterministic": False,
        }
        | UNCALLED,
    ]
    assert facts(load([], modules)) == []


def test_no_module_takes_the_place_of_an_installed_one(modules: Path) -> None:
    (modules / "shapes.py").write_text(FUNCTIONS)
    for name in ("colorsys", "sortedcontainers"):
        (modules / f"{name}.py").write_text(FUNCTIONS)
    load(["shapes"], modules)
    for name in ("colorsys", "sortedcontainers"):
        with pytest.raises(SettingsError, match=f"module {name} .*declares no function") as refused:
            load([name], modules)
        assert "name that no installed module has" in (refused.value.hint or "")
    assert sys.path[-1] == str(modules)


def test_without_modules_no_directory_is_looked_at(modules: Path) -> None:
    load([], modules)
    assert str(modules) not in sys.path


def test_modules_that_everybody_can_write_are_refused(modules: Path) -> None:
    (modules / "shapes.py").write_text(FUNCTIONS)
    modules.chmod(0o1777)
    with pytest.raises(DirectoryNotPrivate, match="can write"):
        load(["shapes"], modules)
    with pytest.raises(SettingsError, match="functions_path"):
        load(["shapes"], modules / "missing")


@pytest.mark.parametrize(
    ("row_ns", "said"),
    [(None, "7 rows"), (1_234_567.0, "7 rows, 1,235 µs each"), (1_234.5, "7 rows, 1.23 µs each")],
)
def test_what_a_row_takes_is_told_in_microseconds(row_ns: float | None, said: str) -> None:
    one = {"rows": 7, "row_ns": row_ns, "errors": {}, "last_error": None}
    assert counted(one) == said
    errors = {"raised": 1_200, "late": 1}
    assert counted(one | {"errors": errors, "last_error": "E"}) == f"{said}, 1 late, 1,200 raised (last: E)"
    assert counted(one | {"rows": 0}) == ""


def test_entry_points_are_loaded(modules: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(modules))
    (modules / "shapes.py").write_text(FUNCTIONS)
    info = modules / "shapes-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: shapes\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[tureen.functions]\nfar = shapes:distance\n")
    assert [one["name"] for one in facts(load([], modules))] == ["DISTANCE"]


DECLARED = (
    "import tureen\n@tureen.function(arguments=['{type}'], returns='DOUBLE')\ndef {name}(x): return x\n"
)


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("raise RuntimeError('no licence')", "no licence"),
        ("import nothing_of_that_name", "nothing_of_that_name"),
        ("def half(x): return x / 2", "declares no function"),
        (DECLARED.format(type="NUMBER", name="half"), "function half"),
        (DECLARED.format(type="DOUBLE", name="abs"), "this name is taken"),
        (DECLARED.format(type="DOUBLE", name="distance"), "both declare the function DISTANCE"),
    ],
)
def test_what_cannot_be_loaded_is_refused_with_what_to_do(modules: Path, source: str, said: str) -> None:
    (modules / "shapes.py").write_text(FUNCTIONS)
    (modules / "broken.py").write_text(source)
    with pytest.raises(SettingsError, match=said) as refused:
        load(["shapes", "broken"], modules)
    assert refused.value.hint
    assert "broken" in str(refused.value) or said == "this name is taken"


def test_what_ends_or_hangs_in_a_process_of_its_own_stops_no_query(
    kafka: str, tmp_path: Path, service_id: str, name: str
) -> None:
    (tmp_path / "own_shapes.py").write_text(FUNCTIONS + FRAGILE)
    own = Broker(kafka, tmp_path / "data", service_id, FUNCTIONS="own_shapes").start(cwd=tmp_path)
    own.create(stream_sql(name))
    calling = own.register(f"SELECT id, fragile(id) AS f FROM {name} WHERE fragile(id) >= 0")
    other = own.register(f"SELECT id FROM {name}")
    instance = own.http.get("/status").json()["instance"]
    own.send(name, [{"id": i, "v": 0, "ts": BASE_MS + i} for i in range(6)])
    expected = [[0, 0], [2, 20], [4, 40]]
    assert own.await_rows(other, 5) == [[i] for i in range(5)]
    assert own.await_rows(calling, 3) == expected
    told = own.http.get(f"/queries/{calling}").json()
    assert told["predicate_errors"] == 2
    status = own.http.get("/status").json()
    assert status["instance"] == instance
    (fragile,) = (one for one in status["functions"] if one["name"] == "FRAGILE")
    assert fragile["isolated"]
    assert set(fragile["errors"]) >= {"crashed", "late"}
    plan = own.http.get(f"/queries/{calling}/plan").json()
    (module,) = (one for held in plan["modules"].values() for one in held if "FRAGILE" in one["name"])
    assert module["errors"] == 2
    own.kill()
    own.start(cwd=tmp_path)  # what is replayed is called again
    assert own.rows(calling) == expected
    assert own.stop() == 0


def test_a_slow_function_has_others_wait_for_part_of_a_second(
    kafka: str, tmp_path: Path, service_id: str, name: str
) -> None:
    (tmp_path / "own_shapes.py").write_text(FUNCTIONS + FRAGILE)
    own = Broker(kafka, tmp_path / "data", service_id, FUNCTIONS="own_shapes").start(cwd=tmp_path)
    own.create(stream_sql(name))
    handle = own.register(f"SELECT COUNT(*) FROM {name} WHERE slow(id)")

    def commits() -> tuple[int, int]:
        """(all, those of which steps took over a second)."""
        told = own.http.get("/metrics").text
        found = {
            le: sum(int(float(one)) for one in re.findall(rf'step_seconds_bucket{{le="{le}".*}} (.+)', told))
            for le in ("1.0", "\\+Inf")
        }
        return found["\\+Inf"], found["\\+Inf"] - found["1.0"]

    def send(first: int, last: int) -> None:
        own.send(name, [{"id": i, "v": 0, "ts": BASE_MS + i} for i in range(first, last + 1)])
        wait_until(lambda: own.rows(handle) == [[last // 2]], 60.0)

    send(0, 200)
    before = commits()
    send(201, 1_700)  # three seconds of calls
    after = commits()
    assert after[0] > before[0]
    assert after[1] == before[1]
    assert own.stop() == 0


def test_queries_call_them_and_a_broken_module_stops_the_start(
    kafka: str, tmp_path: Path, service_id: str, name: str
) -> None:
    (tmp_path / "own_shapes.py").write_text(FUNCTIONS)
    for taken in ("uvloop", "faust", "aiohttp", "httptools", "rocksdict", "secrets"):
        (tmp_path / f"{taken}.py").write_text("raise SystemExit('from the working directory')")
    own = Broker(kafka, tmp_path / "data", service_id, FUNCTIONS="own_shapes").start(cwd=tmp_path)
    own.create(stream_sql(name))
    sql = f"SELECT id, distance(id, v) AS far, roman(id) AS r FROM {name} WHERE distance(id, v) > 1"
    handle = own.register(sql)
    own.send(name, [{"id": i, "v": 0, "ts": BASE_MS + i} for i in range(7)])
    expected = [[2, 2.0, "II"], [3, 3.0, "III"], [4, 4.0, None], [5, 5.0, None]]
    assert own.await_rows(handle, 4) == expected
    assert own.snapshot(handle)["errors"] == 2
    refused = own.http.post("/queries", json={"sql": f"SELECT distance(id) FROM {name}"})
    assert refused.status_code == 400
    assert [one["name"] for one in own.http.get("/status").json()["functions"]] == ["DISTANCE", "ROMAN"]
    shown = own.http.post("/statements", json={"sql": "SHOW FUNCTIONS"}).json()["rows"]
    (roman,) = (row for row in shown if row[0] == "ROMAN")
    assert roman[1:3] == ["user", "ROMAN(BIGINT) -> STRING"]
    assert re.fullmatch(
        r"\d+ rows, [\d.,]+ µs each, \d+ raised \(last: ValueError at own_shapes.py:12\)", roman[3]
    )
    told = own.http.get("/metrics").text
    assert re.search(r'tureen_function_errors_total\{function="ROMAN",reason="raised"\} [1-9]', told)
    assert re.search(r'tureen_function_rows_total\{function="DISTANCE"\} [1-9]', told)
    own.http.patch(f"/queries/{handle}", json={"maintenance": "none"})
    assert own.rows(handle) == expected
    own.kill()

    # Without the function its queries are refused, and nobody else's.
    del own.settings["FUNCTIONS"]
    own.start(cwd=tmp_path)
    assert own.state(handle) == "ERROR"
    assert "distance" in own.http.get(f"/queries/{handle}").json()["error"]["message"].lower()
    other = own.register(f"SELECT id FROM {name} WHERE id < 2")
    assert own.rows(other) == [[0], [1]]
    assert own.stop() == 0
    own.settings["FUNCTIONS"] = "own_shapes"
    own.start(cwd=tmp_path)
    assert own.state(handle) == "RUNNING"
    assert own.rows(handle) == expected
    assert own.rows(other) == [[0], [1]]
    assert own.stop() == 0

    (tmp_path / "own_shapes.py").write_text("raise RuntimeError('no licence')")
    assert own.launch(cwd=tmp_path).wait(READY_S) == 1
    assert "no licence" in own.tail()
    assert "TUREEN_FUNCTIONS" in own.tail()


@pytest.mark.parametrize("name", ["../x", "/tmp/x", "x.", "a b", "shapes-2"])
def test_what_is_no_name_of_a_module_is_told(modules: Path, name: str) -> None:
    with pytest.raises(SettingsError, match="is no module's name"):
        load([name], modules)
