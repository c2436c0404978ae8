"""FROM with several sources: what is bound, what names mean, where conditions go."""

from __future__ import annotations

import pytest

from engine.algebra.filter.stage import Filter
from engine.algebra.join.stage import Join, JoinKind
from engine.algebra.project.stage import Output, Project
from engine.algebra.semi_join.stage import SemiJoin
from engine.language.query import Query
from engine.language.statements import parse
from engine.model.expressions import Cast, Column, Compare, Literal
from engine.model.limits import Limits
from engine.model.source import Stream
from engine.model.types import BIGINT, BOOLEAN, DATE, DOUBLE, INTEGER, STRING, TIMESTAMP, decimal
from engine.windows.clauses import NOW, UNBOUNDED, Instant, RowWindow, TimeWindow
from tests.language.fixtures import CATALOGUE, stream_of
from tests.language.meaning import meaning
from tureen.errors import LimitExceeded, TureenError

FLIGHTS = 9
"""Columns of flights; those of what is joined to it follow."""
WEATHER = CATALOGUE["weather"]


def bound(sql: str) -> Query:
    query = parse(sql, CATALOGUE, Limits())
    assert isinstance(query, Query)
    return query


def join_of(sql: str) -> Join:
    """The one join of a query over flights."""
    query = bound(sql)
    assert query.source == "flights"
    (join,) = [stage for stage in query.stages if isinstance(stage, Join)]
    return join


def names(query: Query) -> list[str]:
    return [name for name, _ in query.columns]


def all_of(stream: object) -> Project:
    assert isinstance(stream, Stream)
    return Project(
        tuple(
            Output(field.name, Column(place, field.name, field.type))
            for place, field in enumerate(stream.schema)
        )
    )


# --- the bound form


def test_a_join_of_two_streams() -> None:
    query = bound(
        "SELECT f.carrier, wind FROM flights [RANGE 1 MINUTE] f JOIN weather w [ROWS 9] ON f.dest = w.dest"
    )
    join, project = query.stages
    assert isinstance(join, Join)
    assert query.scan.window == TimeWindow(Instant(relative=True, ms=-60_000), NOW)
    assert join.inner.scan.window == RowWindow(9)
    assert join.inner.stages == (all_of(WEATHER),)
    assert (join.kind, join.condition, join.latest) == ("inner", None, None)
    assert join.keys == ((Column(2, "dest", STRING), Column(0, "dest", STRING)),)
    assert project == Project(
        (
            Output("carrier", Column(0, "carrier", STRING)),
            Output("wind", Column(FLIGHTS + 1, "wind", DOUBLE)),
        )
    )
    assert query.sources == ("flights", "weather")


@pytest.mark.parametrize(
    ("written", "kind"),
    [
        ("JOIN", "inner"),
        ("INNER JOIN", "inner"),
        ("LEFT JOIN", "left"),
        ("LEFT OUTER JOIN", "left"),
        ("RIGHT JOIN", "right"),
        ("FULL OUTER JOIN", "full"),
        ("SEMI JOIN", "semi"),
        ("LEFT SEMI JOIN", "semi"),
        ("ANTI JOIN", "anti"),
        ("LEFT ANTI JOIN", "anti"),
    ],
)
def test_kinds(written: str, kind: JoinKind) -> None:
    join = join_of(f"SELECT carrier FROM flights f {written} weather w ON f.dest = w.dest")
    assert join.kind == kind


def test_keys_meet_in_one_type() -> None:
    catalogue = {
        **stream_of("a INTEGER, b BIGINT, c DECIMAL(9, 2), d DATE, e DOUBLE, f BIGINT", "topic = 't'"),
        "u": stream_of("a BIGINT, b DOUBLE, c DECIMAL(9, 4), d TIMESTAMP, e DOUBLE, f DECIMAL(9, 2)")["t"],
    }
    query = parse(
        "SELECT 1 FROM t JOIN u ON t.a = u.a AND u.b = t.b AND t.c = u.c AND t.d = u.d AND t.e = u.e "
        "AND t.f = u.f",
        catalogue,
        Limits(),
    )
    assert isinstance(query, Query)
    join = query.stages[0]
    assert isinstance(join, Join)
    wide, digits = decimal(11, 4), decimal(18, 2)
    assert join.keys == (
        (Cast(Column(0, "a", INTEGER), BIGINT), Column(0, "a", BIGINT)),
        (Cast(Column(1, "b", BIGINT), DOUBLE), Column(1, "b", DOUBLE)),
        (Cast(Column(2, "c", decimal(9, 2)), wide, True), Cast(Column(2, "c", decimal(9, 4)), wide, True)),
        (Cast(Column(3, "d", DATE), TIMESTAMP), Column(3, "d", TIMESTAMP)),
        (Column(4, "e", DOUBLE), Column(4, "e", DOUBLE)),
        (Cast(Column(5, "f", BIGINT), digits, True), Cast(Column(5, "f", decimal(9, 2)), digits, True)),
    )


def test_conditions_are_numbered_over_both_sides() -> None:
    join = join_of("SELECT 1 FROM flights f JOIN weather w ON f.delay < w.wind AND f.dest = w.dest")
    assert len(join.keys) == 1
    assert join.condition == Compare(
        "<", Column(3, "delay", DOUBLE), Column(FLIGHTS + 1, "weather.wind", DOUBLE)
    )


def test_a_chain_of_joins() -> None:
    query = bound(
        "SELECT 1 FROM flights f JOIN weather w ON f.dest = w.dest LEFT JOIN planes p ON p.flight = f.flight "
        "AND w.wind > p.seats"
    )
    first, second, _ = query.stages
    assert isinstance(first, Join)
    assert isinstance(second, Join)
    assert second.keys == ((Cast(Column(1, "flight", INTEGER), BIGINT), Column(0, "flight", BIGINT)),)
    seats = Column(FLIGHTS + 4 + 2, "planes.seats", INTEGER)
    assert second.condition == Compare(">", Column(FLIGHTS + 1, "wind", DOUBLE), seats)
    assert query.sources == ("flights", "weather", "planes")


def test_a_join_with_itself() -> None:
    query = bound("SELECT a.dest, b.dest FROM flights a JOIN flights b ON a.carrier = b.carrier")
    assert query.sources == ("flights",)
    assert names(query) == ["dest", "dest_2"]


def test_a_selection_goes_into_the_scan() -> None:
    join = join_of(
        "SELECT l.twice FROM flights f JOIN (SELECT dest AS d, wind * 2 AS twice FROM weather "
        "WHERE wind > 5) l ON f.dest = l.d AND twice > f.delay"
    )
    assert join.inner.stages == (all_of(WEATHER),)
    assert join.inner.scan.predicate == Compare(">", Column(1, "wind", DOUBLE), Literal(5.0, DOUBLE))
    assert join.keys == ((Column(2, "dest", STRING), Column(0, "dest", STRING)),)


def test_what_may_be_missing_is_computed_before_it_is() -> None:
    """COALESCE(wind, 0) of a row that has no partner is NULL, not 0."""
    inner = "(SELECT dest, COALESCE(wind, 0) AS wind FROM weather) w"
    project = join_of(f"SELECT w.wind FROM flights f LEFT JOIN {inner} ON f.dest = w.dest").inner.stages[-1]
    assert isinstance(project, Project)
    assert len(project.outputs) == 2
    query = bound(f"SELECT w.wind FROM {inner} RIGHT JOIN flights f ON f.dest = w.dest")
    assert [type(stage) for stage in query.stages] == [Project, Join, Project]
    flat = join_of(f"SELECT w.wind FROM flights f JOIN {inner} ON f.dest = w.dest")
    assert flat.inner.stages == (all_of(WEATHER),)


def test_brackets_make_joins_come_first() -> None:
    join = join_of(
        "SELECT model FROM flights f LEFT JOIN (weather w JOIN planes p ON w.wind > p.seats) "
        "ON f.dest = w.dest AND p.flight = f.flight"
    )
    assert join.kind == "left"
    assert [type(stage) for stage in join.inner.stages] == [Join, Project]
    assert [inner.index for _, inner in join.keys if isinstance(inner, Column)] == [0, 4]
    left = meaning("SELECT model FROM (flights f JOIN weather w USING (dest)) JOIN planes p USING (flight)")
    assert left == meaning(
        "SELECT model FROM flights f JOIN weather w USING (dest) JOIN planes p USING (flight)"
    )


def test_a_window_for_all_streams_and_no_table() -> None:
    query = bound(
        "SELECT 1 FROM flights f, weather w, planes WHERE f.dest = w.dest BEGIN NOW - 60000 END NOW"
    )
    minute = TimeWindow(Instant(relative=True, ms=-60_000), NOW)
    assert [scan.window for scan in query.scans()] == [minute, minute, UNBOUNDED]


def test_another_stream_in_a_condition() -> None:
    query = bound(
        "SELECT carrier FROM flights f WHERE dest IN (SELECT dest FROM weather WHERE wind > 3) "
        "AND NOT EXISTS (SELECT * FROM planes p JOIN weather w ON w.wind > p.seats WHERE p.flight = f.flight)"
    )
    within, without, _ = query.stages
    assert isinstance(within, SemiJoin)
    assert isinstance(without, SemiJoin)
    assert within.inner.source == "weather"
    assert without.negated
    assert not without.null_aware
    assert without.keys == (Cast(Column(1, "flight", INTEGER), BIGINT),)
    assert without.inner.sources == ("planes", "weather")


def test_exists_takes_any_condition() -> None:
    inner = "SELECT 1 FROM weather w WHERE w.dest = f.dest AND w.wind > f.delay AND w.wind > 3"
    for negation, kind in (("", "SEMI"), ("NOT", "ANTI")):
        text = f"SELECT ts FROM flights f WHERE {negation} EXISTS ({inner}) AND f.flight < 9"
        assert meaning(text) == meaning(
            f"SELECT f.ts FROM flights f {kind} JOIN weather w "
            "ON w.dest = f.dest AND w.wind > f.delay AND w.wind > 3 WHERE f.flight < 9"
        )
    alone = join_of("SELECT 1 FROM flights f WHERE NOT EXISTS (SELECT 1 FROM weather WHERE f.delay > 3)")
    assert alone.kind == "anti"
    assert alone.condition == Compare(">", Column(3, "delay", DOUBLE), Literal(3.0, DOUBLE))
    groups = join_of(
        "SELECT 1 FROM flights f WHERE EXISTS (SELECT 1 FROM (SELECT dest, COUNT(*) AS n FROM weather "
        "GROUP BY dest) w WHERE w.n > f.flight AND w.dest = f.dest)"
    )
    assert groups.keys == ((Column(2, "dest", STRING), Column(0, "dest", STRING)),)
    assert groups.condition is not None


# --- the same, said otherwise

SAME = {
    "a comma and WHERE": (
        "SELECT f.carrier FROM flights f JOIN weather w ON f.dest = w.dest AND wind > 3 AND f.delay < wind",
        "SELECT f.carrier FROM flights f, weather w WHERE f.dest = w.dest AND wind > 3 AND f.delay < wind",
        (
            "SELECT f.carrier FROM flights f CROSS JOIN weather w "
            "WHERE w.dest = f.dest AND wind > 3 AND delay < wind"
        ),
        (
            "SELECT f.carrier FROM flights f JOIN weather w ON TRUE "
            "WHERE f.dest = w.dest AND w.wind > 3 AND f.delay < w.wind"
        ),
        (
            "SELECT f.carrier FROM flights f JOIN (SELECT * FROM weather WHERE wind > 3) w USING (dest) "
            "WHERE delay < wind"
        ),
    ),
    "the order of conditions": (
        "SELECT 1 FROM flights f, weather w, planes p WHERE p.flight = f.flight AND f.dest = w.dest",
        "SELECT 1 FROM flights f JOIN weather w ON f.dest = w.dest JOIN planes p ON f.flight = p.flight",
    ),
    "ON and WHERE of the side that is kept": (
        "SELECT 1 FROM flights f LEFT JOIN weather w ON f.dest = w.dest WHERE f.delay > 3",
        "SELECT 1 FROM (SELECT * FROM flights WHERE delay > 3) f LEFT JOIN weather w ON f.dest = w.dest",
    ),
    "ON of the side that may be missing": (
        "SELECT 1 FROM flights f LEFT JOIN weather w ON f.dest = w.dest AND w.wind > 3",
        "SELECT 1 FROM flights f LEFT JOIN (SELECT * FROM weather WHERE wind > 3) w ON f.dest = w.dest",
    ),
    "WHERE of what RIGHT keeps": (
        "SELECT 1 FROM flights f RIGHT JOIN weather w ON f.dest = w.dest AND f.delay > 3 WHERE w.wind > 3",
        (
            "SELECT 1 FROM (SELECT * FROM flights WHERE delay > 3) f "
            "RIGHT JOIN (SELECT * FROM weather WHERE wind > 3) w ON f.dest = w.dest"
        ),
    ),
    "a window behind or before its name": (
        "SELECT 1 FROM flights f [ROWS 5] JOIN weather [ROWS 6] w USING (dest)",
        "SELECT 1 FROM flights [ROWS 5] AS f JOIN (SELECT * FROM weather [ROWS 6]) w USING (dest)",
    ),
    "WITH and a view": (
        (
            "WITH l AS (SELECT carrier, delay * 2 AS twice, ts FROM flights WHERE delay > 10) "
            "SELECT l.twice FROM l JOIN l m ON l.carrier = m.carrier"
        ),
        "SELECT late.twice FROM late JOIN late m ON late.carrier = m.carrier",
    ),
    "a condition on a subquery of joins": (
        "SELECT c FROM (SELECT carrier AS c, wind FROM flights f JOIN weather w USING (dest)) WHERE wind > 3",
        "SELECT f.carrier AS c FROM flights f JOIN weather w ON f.dest = w.dest AND wind > 3",
    ),
    "ASOF by USING, either way around": (
        "SELECT 1 FROM flights f ASOF JOIN weather w ON f.dest = w.dest AND f.ts >= w.ts",
        "SELECT 1 FROM flights f ASOF JOIN weather w ON w.ts <= f.ts AND w.dest = f.dest",
        "SELECT 1 FROM flights f ASOF JOIN weather w USING (dest, ts)",
        "SELECT 1 FROM flights f ASOF INNER JOIN weather w USING (dest, ts)",
    ),
    "ASOF LEFT": (
        "SELECT 1 FROM flights f ASOF LEFT JOIN weather w USING (dest, ts)",
        "SELECT 1 FROM flights f LEFT ASOF JOIN weather w USING (dest, ts)",
    ),
}


@pytest.mark.parametrize("name", SAME)
def test_texts_that_mean_the_same(name: str) -> None:
    first, *others = SAME[name]
    for other in others:
        assert repr(meaning(other)) == repr(meaning(first))


# --- conditions that must stay


def test_what_outer_joins_give_is_asked_above_them() -> None:
    for kind in ("LEFT", "FULL"):
        query = bound(
            f"SELECT 1 FROM flights f {kind} JOIN weather w USING (dest) WHERE wind > 3 AND delay < wind"
        )
        join, filtered, _ = query.stages
        assert isinstance(join, Join)
        assert isinstance(filtered, Filter)
        assert join.condition is None
        assert join.inner.scan.predicate is None
    full = bound(
        "SELECT 1 FROM flights f FULL JOIN weather w ON f.dest = w.dest AND delay > 1 WHERE delay < 9"
    )
    assert full.scan.predicate is None
    assert isinstance(full.stages[1], Filter)


def test_a_condition_stops_below_the_join_that_would_change_it() -> None:
    query = bound(
        "SELECT 1 FROM flights f JOIN weather w USING (dest) FULL JOIN planes p ON p.seats > w.wind "
        "JOIN flights g ON g.flight = p.flight WHERE f.delay > 3 AND g.delay > 3 AND w.wind < g.delay"
    )
    first, full, last, above, _ = query.stages
    assert isinstance(first, Join)
    assert isinstance(full, Join)
    assert isinstance(last, Join)
    assert query.scan.predicate is None
    assert last.inner.scan.predicate is not None
    assert last.condition is not None
    assert isinstance(above, Filter)


def test_asof_asks_candidates_in_on_and_the_partner_in_where() -> None:
    join = join_of(
        "SELECT 1 FROM flights f ASOF JOIN weather w ON f.dest = w.dest AND f.ts > w.ts AND wind > 3 "
        "WHERE wind < 50 AND f.day = w.day"
    )
    assert join.latest is not None
    assert join.latest.strict
    assert join.latest.outer == Column(8, "ts", TIMESTAMP)
    assert join.latest.inner == Column(3, "ts", TIMESTAMP)
    assert len(join.keys) == 1
    assert join.inner.scan.predicate == Compare(">", Column(1, "wind", DOUBLE), Literal(3.0, DOUBLE))
    assert join.condition is not None


def test_an_anti_join_keeps_what_its_own_condition_rejects() -> None:
    query = bound(
        "SELECT 1 FROM flights f ANTI JOIN weather w ON f.dest = w.dest AND f.cancelled AND wind > 3"
    )
    join = query.stages[0]
    assert isinstance(join, Join)
    assert query.scan.predicate is None
    assert join.condition == Column(6, "cancelled", BOOLEAN)
    assert join.inner.scan.predicate is not None


def test_many_conditions_are_one_filter() -> None:
    """Conditions on groups below a join do not pile up as stages."""
    conditions = " AND ".join(f"n <> {number}" for number in range(400))
    join = join_of(
        "SELECT 1 FROM flights f JOIN (SELECT dest, COUNT(*) AS n FROM weather GROUP BY dest) w USING (dest) "
        f"WHERE {conditions}"
    )
    assert len(join.inner.stages) == 2


# --- names


@pytest.mark.parametrize(
    ("sql", "wanted"),
    [
        (
            "SELECT * FROM planes a JOIN planes b ON a.flight = b.seats",
            "flight model seats flight_2 model_2 seats_2",
        ),
        ("SELECT b.*, a.model FROM planes a JOIN planes b ON TRUE", "flight model seats model_2"),
        ("SELECT * FROM planes a JOIN planes b USING (model)", "model flight seats flight_2 seats_2"),
        (
            "SELECT * FROM planes a JOIN planes b USING (flight, model) JOIN planes c USING (seats)",
            None,
        ),
        (
            "SELECT *, wind FROM planes a FULL JOIN weather ON wind > seats",
            "flight model seats dest wind day ts wind_2",
        ),
        ("SELECT * FROM planes a SEMI JOIN weather ON wind > seats", "flight model seats"),
        (
            "SELECT * FROM (SELECT flight AS x FROM planes) JOIN (SELECT flight AS y FROM planes) ON x = y",
            "x y",
        ),
        ("SELECT * FROM planes p(a, b, c) JOIN planes q(d, e, f) ON a = d", "a b c d e f"),
    ],
)
def test_stars(sql: str, wanted: str | None) -> None:
    if wanted is None:
        with pytest.raises(TureenError, match="several sources before have a column 'seats'"):
            bound(sql)
    else:
        assert names(bound(sql)) == wanted.split()


def test_a_name_of_using_is_the_side_that_is_kept() -> None:
    for kind, place in (("", 0), ("LEFT", 0), ("RIGHT", 3)):
        query = bound(f"SELECT flight FROM planes a {kind} JOIN planes b USING (flight)")
        project = query.stages[-1]
        assert isinstance(project, Project)
        assert isinstance(project.outputs[0].expression, Column)
        assert project.outputs[0].expression.index == place
    full = bound("SELECT flight FROM planes a FULL JOIN planes b USING (flight)").stages[-1]
    assert isinstance(full, Project)
    assert "COALESCE" in repr(full)


def test_the_right_side_of_a_semi_join_is_named_in_on_alone() -> None:
    with pytest.raises(TureenError, match="'w' is joined by SEMI or ANTI JOIN"):
        bound("SELECT w.wind FROM flights f SEMI JOIN weather w USING (dest)")
    assert names(bound("SELECT dest, ts FROM flights f SEMI JOIN weather w USING (dest)")) == ["dest", "ts"]


def test_fields_of_a_window_of_one_source() -> None:
    query = bound(
        "SELECT x.window, COUNT(*) AS n FROM TUMBLE(flights, 1 HOUR) x JOIN weather w USING (dest) "
        "GROUP BY x.window"
    )
    assert names(query) == ["window_start", "window_end", "n"]


def test_windows_are_equal_where_both_their_ends_are() -> None:
    counts = "(SELECT TUMBLE(1 HOUR) AS window, COUNT(*) AS n FROM {} GROUP BY 1)"
    flights, weather = counts.format("flights"), counts.format("weather")
    text = (
        f"SELECT a.window.start AS s, a.n, b.n FROM {flights} a FULL JOIN {weather} b ON a.window = b.window"
    )
    assert meaning(text) == meaning(
        f"SELECT a.window_start AS s, a.n, b.n FROM {flights} a FULL JOIN {weather} b "
        "ON a.window.start = b.window.start AND a.window_end = b.window_end"
    )
    assert len(join_of(text).keys) == 2


# --- limits


def test_eight_sources_and_not_nine() -> None:
    sources = [f"planes p{number}" for number in range(8)]
    assert len(list(bound(f"SELECT 1 FROM {', '.join(sources)}").scans())) == 8
    with pytest.raises(LimitExceeded) as caught:
        bound(f"SELECT 1 FROM {', '.join(sources)}, weather")
    assert caught.value.limit == "joined_sources_max"
    assert caught.value.column == len(f"SELECT 1 FROM {', '.join(sources)}, ") + 1
    nested = "SELECT 1 FROM (SELECT a.flight FROM planes a, planes b, planes c, planes d LIMIT 5) x"
    with pytest.raises(LimitExceeded):
        bound(f"{nested}, planes e, (planes f CROSS JOIN planes g), planes h, planes i")


def test_a_limit_of_fewer_sources() -> None:
    with pytest.raises(LimitExceeded, match="joined_sources_max is 1"):
        parse("SELECT 1 FROM planes a, planes b", CATALOGUE, Limits(joined_sources_max=1))
