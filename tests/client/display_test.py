"""What notebooks show."""

from __future__ import annotations

import sys
import types
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from datetime import datetime

import pyarrow as pa
import pytest

import tureen
from tureen.display import CELL_CHARACTERS, ROWS_SHOWN, pictures, snapshot_html
from tureen.errors import BrokerUnavailable, PackageMissing, QueryPaused
from tureen.snapshot import Snapshot
from tureen.sparkline import HEIGHT, PIECES, WIDTH, sparkline


def parsed(html: str) -> ET.Element:
    """Whether it is well-formed, too."""
    return ET.fromstring(f"<div>{html}</div>")


def cells(html: str) -> list[list[str]]:
    return [["".join(cell.itertext()) for cell in row] for row in parsed(html).findall("./table/tbody/tr")]


def test_a_table_with_types_and_what_the_answer_says_of_itself() -> None:
    table = pa.table({"city": ["Bern", None], "n": [1, 2]})
    html = Snapshot(table, "1-9", 1_748_772_000_000, False, 5_000, True, 1_234)._repr_html_()
    assert cells(html) == [["Bern", "1"], ["NULL", "2"]]
    assert ["".join(th.itertext()) for th in parsed(html).iter("th")] == ["citystring", "nint64"]
    caption = parsed(html).find(".//caption")
    assert caption is not None
    assert caption.text == (
        "2 rows, NOW 2025-06-01 10:00:00.000 UTC, position 1-9, incomplete: complete from "
        "1970-01-01 00:00:05.000 UTC on, approximate, 1,234 values could not be computed"
    )
    assert "nothing has come in yet" in snapshot_html(Snapshot(table, "1-9", None))
    assert "NOW 1000000000000000000 ms" in snapshot_html(Snapshot(table, "1-9", 10**18))


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


def test_an_answer_is_drawn_again_when_it_changed_and_ends_with_its_query(
    client: tureen.Client, trades: str
) -> None:
    query = client.register(f"SELECT price FROM {trades} WHERE price > 7")
    waited: list[float] = []

    def pause(seconds: float) -> None:
        waited.append(seconds)
        if len(waited) == 3:
            query.unregister()

    drawn = list(pictures(query, 0.5, pause))

    assert cells(drawn[0]) == [["8.0"], ["9.0"]]
    assert "no query answers" in drawn[-1]
    assert drawn[-1].startswith(drawn[-2])
    assert waited[:3] == [0.5, 0.5, 0.5]
    assert len(drawn) <= 4


class Script(tureen.Query):
    """A query whose answers are given."""

    def __init__(self, answers: list[Snapshot | Exception]) -> None:
        self.answers: Iterator[Snapshot | Exception] = iter(answers)

    def snapshot(self, at: int | datetime | None = None) -> Snapshot:
        answer = next(self.answers)
        if isinstance(answer, Exception):
            raise answer
        return answer


def answer(position: str, value: int) -> Snapshot:
    return Snapshot(pa.table({"v": [value]}), position, 0)


def test_while_the_broker_is_away_the_last_answer_stays() -> None:
    away = BrokerUnavailable("no broker answers")
    query = Script(
        [away, away, answer("1-1", 1), answer("1-1", 1), away, away, answer("1-1", 1), answer("1-2", 2)]
    )
    drawn = list(pictures(query, 1, lambda _: None, times=8))
    assert [("no broker" in html, cells(html)) for html in drawn] == [
        (True, []),
        (False, [["1"]]),
        (True, [["1"]]),
        (False, [["1"]]),
        (False, [["2"]]),
    ]
    paused = list(pictures(Script([answer("1-1", 1), QueryPaused()]), 1, lambda _: None))
    assert "this query is paused" in paused[-1]


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


def test_live_in_a_notebook(monkeypatch: pytest.MonkeyPatch) -> None:
    notebook = Notebook()
    monkeypatch.setitem(sys.modules, "IPython", types.ModuleType("IPython"))
    monkeypatch.setitem(sys.modules, "IPython.display", notebook)

    tureen.display_live(Script([answer("1-1", 1), answer("1-2", 2)]), every=0.05, times=2)

    assert [cells(html) for html in notebook.shown] == [[["1"]], [["2"]]]
    monkeypatch.setitem(sys.modules, "IPython.display", None)
    with pytest.raises(PackageMissing, match="pip install ipython"):
        tureen.display_live(Script([]))
    for every in (0.0, float("nan"), -1.0):
        with pytest.raises(ValueError, match="every"):
            tureen.display_live(Script([]), every)
