"""What notebooks show."""

from __future__ import annotations

import queue
import sys
import types
import xml.etree.ElementTree as ET
from collections.abc import Iterator

import pyarrow as pa
import pytest

import tureen
from tureen import console, errors
from tureen.approximation import Approximation
from tureen.changes import AwayEvent, Change, ChangesEvent, EndEvent, Event, SnapshotEvent
from tureen.columns import Column
from tureen.display import CELL_CHARACTERS, ROWS_SHOWN, pictures, snapshot_html
from tureen.errors import BrokerUnavailable, PackageMissing, UnknownQuery
from tureen.live import LiveAnswer
from tureen.snapshot import Snapshot
from tureen.sparkline import HEIGHT, PIECES, WIDTH, sparkline


def parsed(html: str) -> ET.Element:
    """Whether it is well-formed, too."""
    return ET.fromstring(f"<div>{html}</div>")


def cells(html: str) -> list[list[str]]:
    return [["".join(cell.itertext()) for cell in row] for row in parsed(html).findall("./table/tbody/tr")]


TAG = Approximation("sample", "trips", "declared", 10.0, "percent")


def test_a_table_with_types_and_what_the_answer_says_of_itself() -> None:
    table = pa.table({"city": ["Bern", None], "n": [1, 2]})
    html = Snapshot(table, "1-9", 1_748_772_000_000, False, 5_000, (TAG,), 1_234)._repr_html_()
    assert cells(html) == [["Bern", "1"], ["NULL", "2"]]
    assert ["".join(th.itertext()) for th in parsed(html).iter("th")] == ["citystring", "nint64"]
    caption = parsed(html).find(".//caption")
    assert caption is not None
    assert caption.text == (
        "2 rows, NOW 2025-06-01 10:00:00.000 UTC, position 1-9, incomplete: complete from "
        "1970-01-01 00:00:05.000 UTC on, approximate: sample of trips: 10 percent (declared), "
        "1,234 values could not be computed"
    )
    assert "nothing has come in yet" in snapshot_html(Snapshot(table, "1-9", None))
    assert "NOW 1000000000000000000 ms" in snapshot_html(Snapshot(table, "1-9", 10**18))


def test_numbers_are_whole_and_nested_values_json() -> None:
    maps = pa.array([[("k", 1.5)], None], pa.map_(pa.string(), pa.float64()))
    table = pa.table({"x": [1234567.891, 3.0], "s": [{"a": None, "b": True}, None], "m": maps})
    assert cells(snapshot_html(Snapshot(table, "1-9", 0))) == [
        ["1234567.891", '{"a":null,"b":true}', '{"k":1.5}'],
        ["3.0", "NULL", "NULL"],
    ]


def test_everything_is_escaped_and_long_things_are_cut() -> None:
    evil = "<script>alert('x')</script>"
    table = pa.table({evil: [evil, "y" * 1_000]})
    html = snapshot_html(Snapshot(table, evil, 0))
    assert "<script" not in html
    assert cells(html) == [[evil], ["y" * CELL_CHARACTERS + "…"]]


def test_the_last_rows_are_shown() -> None:
    html = snapshot_html(Snapshot(pa.table({"v": list(range(1_000))}), "1-1", 0))
    assert cells(html) == [[str(v)] for v in range(1_000 - ROWS_SHOWN, 1_000)]
    assert f"the last {ROWS_SHOWN} of 1,000 rows" in html
    assert cells(snapshot_html(Snapshot(pa.table({"v": pa.array([], pa.int64())}), "1-1", 0))) == []


@pytest.mark.parametrize(
    ("times", "drawn"),
    [([1, 2, 3], True), ([1, 1, 3], True), ([1, 3, 2], False), ([1, None, 3], False), ([2, 2, 2], False)],
)
def test_numbers_have_a_line_where_rows_are_in_the_order_of_time(
    times: list[int | None], drawn: bool
) -> None:
    table = pa.table({"at": pa.array(times, pa.timestamp("ms")), "v": [3.0, None, 1.0], "s": ["a", "b", "c"]})
    html = snapshot_html(Snapshot(table, "1-1", 0))
    assert len(parsed(html).findall(".//svg")) == int(drawn)


def points(svg: str) -> list[list[tuple[float, float]]]:
    return [
        [(float(x), float(y)) for x, y in (pair.split(",") for pair in line.attrib["points"].split())]
        for line in ET.fromstring(svg).iter("polyline")
    ]


def test_a_line_goes_from_edge_to_edge_with_gaps_and_keeps_peaks() -> None:
    low, high = HEIGHT - 1.0, 1.0
    assert points(sparkline([(0, 1), (5, 3), (10, 2)])) == [
        [(1, low), (WIDTH / 2, high), (WIDTH - 1, HEIGHT / 2)]
    ]
    assert len(points(sparkline([(0, 1), (1, 2), (2, None), (3, float("nan")), (4, 1), (5, 2)]))) == 2
    values = [(float(at), 1.0 if at == 777 else 0.0) for at in range(10_000)]
    (line,) = points(sparkline(values))
    assert len(line) <= 2 * PIECES
    assert min(y for _, y in line) == high
    assert points(sparkline([(0, -1.7e308), (1, 1.7e308)])) == [[(1, low), (WIDTH - 1, high)]]
    assert points(sparkline([(0, 5), (1, 5)])) == [[(1, low), (WIDTH - 1, low)]]
    assert (
        sparkline([(0, 1)])
        == sparkline([(3, 1), (3, 2)])
        == sparkline([(0, None), (1, None)])
        == sparkline([])
        == ""
    )


def test_a_query_shows_its_id_and_text_but_never_its_handle(client: tureen.Client, trades: str) -> None:
    query = client.register(f"SELECT price FROM {trades} WHERE price < 1")
    html = query._repr_html_()
    text = "".join(parsed(html).itertext())
    assert query.query_id in text
    assert "RUNNING" in text
    assert "price < 1" in text
    assert query.handle not in html
    pending = client.register("SELECT v FROM not_there_yet")
    assert "no stream named" in pending._repr_html_()
    pending.unregister()


class Script:
    """Events that come when the test says so."""

    def __init__(self, *events: Event) -> None:
        self._left: queue.Queue[Event | None] = queue.Queue()
        self.tell(*events)

    def tell(self, *events: Event | None) -> None:
        for event in events:
            self._left.put(event)

    def __iter__(self) -> Iterator[Event]:
        return iter(self._left.get, None)  # type: ignore[arg-type]

    def close(self) -> None:
        self._left.put(None)


COLUMNS = (Column("v", "BIGINT"),)


def answer(position: str, *values: int) -> SnapshotEvent:
    return SnapshotEvent(position, 0, COLUMNS, tuple((value,) for value in values))


def change(position: str, now_ms: int, *changes: tuple[int, int]) -> ChangesEvent:
    return ChangesEvent(position, now_ms, COLUMNS, tuple(Change(w, now_ms, (v,)) for w, v in changes))


def test_what_changed_is_drawn_with_a_line_of_the_number_of_rows() -> None:
    script = Script(answer("1-1", 1))
    later = [change("1-2", 5, (1, 2)), change("1-3", 9, (-1, 1), (1, 3)), EndEvent("1-3", "unregistered")]
    waited: list[float] = []

    def pause(seconds: float) -> None:
        waited.append(seconds)
        script.tell(later.pop(0))

    with LiveAnswer(script) as live:
        drawn = list(pictures(live, 0.5, pause))

    assert [cells(html) for html in drawn[:3]] == [[["1"]], [["1"], ["2"]], [["2"], ["3"]]]
    assert "there is no query with this handle" in drawn[-1]
    assert "NOW 1970-01-01 00:00:00.009 UTC, position 1-3" in drawn[-1]
    assert [len(parsed(html).findall(".//caption/svg")) for html in drawn[:3]] == [0, 1, 1]
    assert set(waited) == {0.5}
    assert "no query" not in drawn[0]


def test_while_the_broker_is_away_the_last_answer_stays() -> None:
    away = AwayEvent("1-1", BrokerUnavailable("no broker answers"))
    script = Script(answer("1-1", 1))
    later = [away, change("1-2", 5, (1, 2))]
    with LiveAnswer(script) as live:
        drawn = list(pictures(live, 1, lambda _: script.tell(later.pop(0)), times=3))
        assert [("no broker" in html, cells(html)) for html in drawn] == [
            (False, [["1"]]),
            (True, [["1"]]),
            (False, [["1"], ["2"]]),
        ]
        assert cells(live._repr_html_()) == [["1"], ["2"]]


class Notebook(types.ModuleType):
    """As much of IPython.display as is used."""

    def __init__(self) -> None:
        super().__init__("IPython.display")
        self.shown: list[str] = []

    HTML = staticmethod(str)

    def display(self, html: str, *, display_id: bool) -> Notebook:
        assert display_id
        self.shown.append(html)
        return self

    def update(self, html: str) -> None:
        self.shown.append(html)


def test_live_in_a_notebook(monkeypatch: pytest.MonkeyPatch, client: tureen.Client, trades: str) -> None:
    notebook = Notebook()
    monkeypatch.setitem(sys.modules, "IPython", types.ModuleType("IPython"))
    monkeypatch.setitem(sys.modules, "IPython.display", notebook)
    query = client.register(f"SELECT price FROM {trades} WHERE price > 7")

    tureen.display_live(query, every=0.05, times=1)
    assert [cells(html) for html in notebook.shown] == [[["8.0"], ["9.0"]]]
    query.unregister()
    with pytest.raises(UnknownQuery):
        tureen.display_live(query)
    monkeypatch.setitem(sys.modules, "IPython.display", None)
    with pytest.raises(PackageMissing, match="pip install ipython"):
        tureen.display_live(query)
    for every in (0.0, float("nan"), -1.0):
        with pytest.raises(ValueError, match="every"):
            tureen.display_live(query, every)


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (None, "query q is on its way\n"),
        (errors.BeingRegistered(0), "query q is on its way: "),
        (errors.UnknownSource("orders"), "query q waits for its stream to be created: "),
        (
            errors.UnknownSummary("rare", "there is no summary named rare"),
            "query q waits for its summary to be created: ",
        ),
    ],
)
def test_a_query_that_does_not_stand_yet_says_why(
    error: errors.TureenError | None, told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    console._show_pending("q", error)
    shown = capsys.readouterr().err
    assert shown.startswith(told)
    assert ("checked again" in shown) == ("waits for" in told)
