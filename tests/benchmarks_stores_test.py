"""What the experiments with promising tuples stand on: rows, exact output, SIMPLE lines, measures."""

import numpy as np
import pytest

from benchmarks.harness import main
from benchmarks.stores import flights as stored_flights
from benchmarks.stores.costs import PAPER
from benchmarks.stores.exact import EVER, Output, exact, output_of
from benchmarks.stores.flights import flights
from benchmarks.stores.intervals import aggregates, draw_intervals, mse, pct_of_answers, simple
from benchmarks.stores.measures import hist_mse, outliers, pct_of_exact, pct_outliers
from benchmarks.stores.promising import STORES, join_text
from benchmarks.stores.runs import Claim
from benchmarks.stores.sales import SWAP_S, Sales, draw
from benchmarks.stores.simple import Simple, lines
from benchmarks.stores.wall import Feed, at_distinct_instants, engine_of
from broker.demo.flights import DataMissing
from engine.language.preference import PreferenceOrder
from engine.language.query import Query
from engine.model.source import SourceName
from engine.promising.found import FoundPairs
from engine.promising.group import Member
from engine.promising.join_members import join_key
from engine.promising.joins import PromisingJoin

WINDOW = 60_000
LINES = lines(PAPER)


def _pairs(sales: Sales, window_ms: int) -> list[tuple[int, int]]:
    """Every pair, by two loops."""
    ts = sales.timestamp
    return [
        (row, other)
        for row in range(len(sales))
        for other in range(row)
        if sales.store[row] != sales.store[other]
        and sales.item[row] == sales.item[other]
        and ts[row] - ts[other] <= window_ms
    ]


def _few() -> Sales:
    """The last row, after which there is no time, joins nothing."""
    sales = draw(1, 12, 40)
    sales.item[-1] = np.setdiff1d(np.arange(sales.items), sales.item)[0]
    return sales


def test_sales_are_those_of_the_seed_and_join_as_in_the_paper() -> None:
    sales = draw(1, 600, 100)
    again = draw(1, 600, 100)
    assert np.array_equal(sales.at, again.at)
    assert np.array_equal(sales.item, again.item)
    assert 600 * 20 * 0.97 < len(sales) < 600 * 20 * 1.03
    assert np.all(np.diff(sales.at) >= 0)
    whole = exact(sales, WINDOW)
    assert 0.06 < whole.pairs / whole.compared < 0.071
    tens = sales.at // (1_000 * SWAP_S[1])
    best = [np.bincount(sales.item[tens == one]).argsort()[-5:] for one in (0, 14)]
    assert set(best[0]) != set(best[1])
    prices = {int(item): set(sales.price[sales.item == item]) for item in np.unique(sales.item)[:50]}
    assert all(len(one) == 1 for one in prices.values())


@pytest.mark.parametrize("window_ms", [0, 2_000, EVER])
def test_exact_output_is_that_of_two_loops(window_ms: int) -> None:
    sales = _few()
    pairs = _pairs(sales, window_ms)
    found = exact(sales, window_ms)
    assert np.array_equal(
        found.by_item, np.bincount([sales.item[row] for row, _ in pairs], minlength=sales.items)
    )
    apart = [sales.timestamp[row] - sales.timestamp[other] for row, other in pairs]
    assert found.distance_s == pytest.approx(np.mean(apart) / 1_000 if apart else 0.0)


@pytest.mark.parametrize("name", LINES)
def test_simple_lines_find_all_with_time_enough_and_a_subset_without(name: str) -> None:
    sales = _few()
    line = LINES[name]
    free = Simple(line.chains, line.newest, line.skip, visit=1e-9, insertion=0.0)
    assert np.array_equal(free.run(sales, 3_000).by_item, exact(sales, 3_000).by_item)
    found, whole = line.run(sales, 3_000), exact(sales, 3_000)
    assert np.all(found.by_item <= whole.by_item)
    # Each visit takes 2.5 units; a probe that is not cut off ends after the last row.
    assert found.pairs <= found.visits <= sales.at[-1] / line.visit + len(sales)
    hurried = Simple(line.chains, line.newest, line.skip, visit=60.0)
    assert hurried.run(sales, 3_000).pairs < found.pairs


def test_chains_are_cut_off_at_their_new_or_old_end() -> None:
    at = np.array([0.0, 10, 20, 30, 100])
    sales = Sales(at, np.array([0, 0, 0, 1, 0]), np.zeros(5, np.int64), np.ones(5), 1)
    # The row of the other store has 70 units: 2 for itself and 68 for two visits.
    old = Simple(visit=30.0).run(sales, WINDOW)
    new = Simple(newest=True, visit=30.0).run(sales, WINDOW)
    assert (old.pairs, new.pairs) == (2, 2)
    assert (old.distance_s, new.distance_s) == (0.025, 0.015)


def test_rows_that_come_during_a_probe_are_skipped() -> None:
    at = np.array([0.0, 10, 100, 101, 300])
    sales = Sales(at, np.array([0, 0, 1, 1, 1]), np.zeros(5, np.int64), np.ones(5), 1)
    assert Simple(skip=True, visit=30.0).run(sales, WINDOW).pairs == 4


def test_no_pair_is_made_up() -> None:
    sales = _few()
    with pytest.raises(RuntimeError, match="no pair"):
        output_of(sales, np.array([0]), np.array([0]), 1)


def test_measures_of_outputs() -> None:
    def output(*by_item: int) -> Output:
        return Output(np.array(by_item), 1.0, 0, 10)

    whole = output(*(100 - n for n in range(100)))
    assert pct_of_exact(output(*(50,) * 100), whole) == pytest.approx(100 * 5_000 / 5_050)
    assert hist_mse(whole, whole) == 0
    assert hist_mse(output(100, *(0,) * 99), whole) > 9_000
    rare = outliers(whole.by_item)
    assert whole.by_item[rare].sum() >= 0.05 * whole.pairs > whole.by_item[rare[:-1]].sum() - 23
    assert pct_outliers(whole, whole) == pytest.approx(5, abs=0.5)
    assert pct_outliers(output(*(0,) * 99, 7), whole) == 100


def test_simple_selection_shares_the_time_among_the_queries() -> None:
    sales = draw(2, 60, 100).of(0)
    queries = draw_intervals(2, sales, 100)
    wanted = queries.wants(sales)
    assert np.all((wanted.mean(axis=1) > 0.04) & (wanted.mean(axis=1) < 0.115))
    assert pct_of_answers(wanted, wanted) == 100
    assert simple(sales, 20).mean() > 0.97
    seen = simple(sales, 200)
    # 100 units a row are enough for 80 of 200 evaluations.
    assert seen.mean() == pytest.approx(0.4, abs=0.05)
    assert np.ptp(seen.sum(axis=1)) <= 0.05 * len(sales)


def test_aggregates_are_those_of_the_last_minute() -> None:
    sales = draw(3, 80, 500).of(0)
    queries = draw_intervals(3, sales, 3)
    wanted = queries.wants(sales)
    sums = aggregates(sales, wanted, 80, 60, None)
    for query in range(3):
        for place, second in enumerate(range(60, 81)):
            now = 1_000 * second
            rows = wanted[query] & (sales.timestamp <= now) & (sales.timestamp > now - 60_000)
            assert sums.count[query, place] == rows.sum()
            assert sums.total[query, place] == pytest.approx(sales.price[rows].sum())
            assert sums.average[query, place] == pytest.approx(
                sales.price[rows].mean() if rows.any() else np.nan, nan_ok=True
            )
    assert mse(sums.total, sums.total) == 0
    late = np.full(wanted.shape, 70_000)
    later = aggregates(sales, wanted, 80, 60, late)
    assert later.count[:, :10].sum() == 0
    assert np.array_equal(later.count[:, 10:], sums.count[:, 10:])


def test_what_must_hold_is_measured_at_its_gaps() -> None:
    points = {"pct": {"pt": {10: 1.0, 50: 4.0, 100: 9.0}, "shj": {10: 2.0, 50: 2.0, 100: 6.0}}}
    assert Claim("twice", "pct", "pt", "shj", 2, (50, 50)).verdict(points).startswith("holds: twice")
    assert Claim("twice", "pct", "pt", "shj", 2, (50, 100)).verdict(points).startswith("holds in part")
    assert (
        Claim("half", "pct", "pt", "shj", 0.5, (10, 10), most=True).verdict(points).startswith("holds: half")
    )
    assert "0.50 at 10" in Claim("twice", "pct", "pt", "shj", 2, (0, 10)).verdict(points)
    assert Claim("twice", "pct", "pt", "skip", 2).verdict(points) == "not measured: twice"


def test_flights_that_are_not_installed_are_left_out_with_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(*_: object) -> None:
        raise DataMissing("the data of the demo is not installed")

    monkeypatch.setattr(stored_flights, "flights", missing)
    with pytest.raises(SystemExit, match="left out: the data of the demo is not installed"):
        main(["promising-fig11", "--data", "ewr-lga", "--gaps", "100"])


@pytest.mark.parametrize(("name", "share"), [("ewr-lga", 0.086), ("ewr-jfk", 0.055)])
def test_flights_join_on_the_carrier(name: str, share: float) -> None:
    try:
        rows = flights(name, 1, 600, 100)
    except DataMissing as missing:
        pytest.skip(str(missing))
    assert len(rows) == 12_000
    assert rows.at[-1] == pytest.approx(600_000)
    counts = np.stack([np.bincount(rows.of(store).item, minlength=rows.items) for store in (0, 1)])
    assert (counts[0] * counts[1]).sum() / counts.sum(axis=1).prod() == pytest.approx(share, abs=0.025)


@pytest.mark.parametrize("order", ["desc", "asc", "weighted"])
def test_parts_find_the_pairs_that_the_engine_finds(order: PreferenceOrder) -> None:
    sales = at_distinct_instants(draw(4, 8, 40))
    engine = engine_of(sales, join_text(order, 0.8, 3_000))
    feed = Feed(engine, sales)
    sources = {name: engine._sources[name] for name in map(SourceName, STORES)}
    summaries = {
        f"{name}_items": source.summarised.at_work[f"{name}_items"] for name, source in sources.items()
    }
    text = join_text(order, 0.8, 3_000)
    query = engine.prepare(text)
    assert isinstance(query, Query)
    group = PromisingJoin(join_key(query, dict.fromkeys(sources, 3)), summaries)
    ((over, _),) = engine._parts.grants.groups()
    group.add(Member("q", query), over.now.at)
    for until in range(500, 8_501, 500):
        for store in (0, 1):
            spent = feed.enter_store(store, until, 20)
            group.arrive(over.now.at, over.now.ms)
            assert group.spend(20, over.now.at) == spent
        mine, theirs = group.found("q"), feed.found()
        assert isinstance(mine, FoundPairs)
        for place in (0, 1):
            assert np.array_equal(mine.rows(place), theirs.rows(place))
        assert mine.pairs().left.tolist() == theirs.pairs().left.tolist()
        assert mine.pairs().right.tolist() == theirs.pairs().right.tolist()
    assert len(theirs) > 20
    assert group.counts.short > 0
