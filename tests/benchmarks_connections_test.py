"""Connections on three links: what is drawn has the properties that the experiments count on, traces are
read, and the answers by numpy are those of a plain simulation.
"""

import gzip
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest

from benchmarks import connections
from benchmarks.connection_answers import Answers, Exits, negation_exits
from benchmarks.connections import COMMON, LINKS, OWN, UNIT_MS, Connections, make_connections
from benchmarks.lbl_trace import parse, read_trace

SEEDS = (1, 2)


@pytest.fixture(scope="module")
def rows() -> Connections:
    return make_connections(np.random.default_rng(1), 400_000)


def test_the_same_seed_draws_the_same_rows() -> None:
    one, other = (make_connections(np.random.default_rng(5), 3_000) for _ in range(2))
    assert np.array_equal(one.src, other.src)
    assert np.array_equal(one.bytes, other.bytes)


def test_protocols_have_their_shares(rows: Connections) -> None:
    shares = {name: float(rows.of(name).mean()) for name in rows.protocols}
    assert shares["ftp"] == pytest.approx(0.05, rel=0.02)
    assert shares["telnet"] == pytest.approx(0.158, rel=0.02)
    rest = sum(shares[name] for name in ("smtp", "nntp", "ftp-data", "finger"))
    assert rest == pytest.approx(0.792, rel=0.01)


def test_sources_are_common_or_of_one_link(rows: Connections) -> None:
    assert rows.src.min() == 0
    for link in range(LINKS):
        own = np.unique(rows.src[link][rows.src[link] >= COMMON])
        assert np.array_equal(own, COMMON + OWN * link + np.arange(OWN))
        assert np.array_equal(np.unique(rows.src[link][rows.src[link] < COMMON]), np.arange(COMMON))
    others = ~(rows.of("ftp") | rows.of("telnet"))
    assert (rows.src[others] < COMMON).mean() == pytest.approx(0.24, abs=0.005)
    assert (rows.src[~others] < COMMON).all()


def test_sources_of_others_follow_zipf(rows: Connections) -> None:
    others = ~(rows.of("ftp") | rows.of("telnet"))
    for first, n in ((0, COMMON), (COMMON, OWN)):
        src = rows.src[0][others[0]]
        counts = np.bincount(src[(src >= first) & (src < first + n)] - first, minlength=n)
        wanted = np.arange(1, n + 1) ** -0.8
        wanted *= counts.sum() / wanted.sum()
        assert counts[:20] == pytest.approx(wanted[:20], rel=0.1)
        assert counts[-200:].sum() == pytest.approx(wanted[-200:].sum(), rel=0.1)


def test_users_of_ftp_and_telnet_stay_for_a_while(rows: Connections) -> None:
    users = rows.of("ftp") | rows.of("telnet")
    lap = COMMON * connections.STAY_UNITS
    units = [np.flatnonzero(users[0, :lap] & (rows.src[0, :lap] == src)) for src in range(0, COMMON, 40)]
    spans = [np.ptp(each) for each in units if each.min() > 8_000 and each.max() < lap - 8_000]
    assert len(spans) > 10
    assert np.median(spans) < 4_000  # of the lap's 320,000
    assert np.mean([len(each) for each in units]) == pytest.approx(400 * 0.208, rel=0.1)


def test_a_source_has_ten_destinations_on_each_link(rows: Connections) -> None:
    of_links = [np.unique(rows.dst[link]) for link in range(LINKS)]
    assert len(np.unique(np.concatenate(of_links))) == sum(map(len, of_links))
    ends = np.unique(np.stack([rows.src[0], rows.dst[0]], axis=1), axis=0)
    used = np.bincount(ends[:, 0], minlength=COMMON + OWN)
    assert used.max() == 10
    assert used[:COMMON].min() == 10  # of those with fewest rows not all have been used


def test_durations_and_bytes_are_log_normal(rows: Connections) -> None:
    assert np.log(rows.duration).mean() == pytest.approx(1.0, abs=0.02)
    assert np.log(rows.duration).std() == pytest.approx(1.5, abs=0.02)
    assert np.log(rows.bytes[rows.bytes > 0]).mean() == pytest.approx(7.5, abs=0.05)


@pytest.mark.parametrize(
    ("window", "expected"),
    [
        (2_000, (0.72, 7.2, 753, 1_350, 0.72, 0.32, 99, 3.0, 0.20)),
        (20_000, (0.97, 9.7, 1_880, 7_830, 0.65, 0.40, 635, 4.3, 0.23)),
        (200_000, (1.00, 9.9, 2_000, 19_400, 0.62, 0.45, 800, 6.6, 0.30)),
    ],
)
def test_answers_have_the_sizes_of_the_experiments(window: int, expected: tuple[float, ...]) -> None:
    """Means over several draws. A window of 2,000 units has the ftp of a dozen users, which weigh much in the
    pairs of query 5.
    """
    found = np.mean([sizes(window, seed) for seed in SEEDS], axis=0)
    tolerances = (0.08, 0.08, 0.03, 0.03, 0.03, 0.15, 0.03, 0.12, 0.25)
    for each, wanted, tolerance in zip(found, expected, tolerances, strict=True):
        assert each == pytest.approx(wanted, rel=tolerance)


def sizes(window: int, seed: int) -> tuple[float, ...]:
    laps = 40 if window == 2_000 else 4
    rows = make_connections(np.random.default_rng(seed), (1 + laps) * window)
    answers = Answers.of(rows, window)
    units = range(window, len(rows), window // 5)
    return (
        np.mean([answers.pairs(unit, "ftp").sum() for unit in units]) / window,
        np.mean([answers.pairs(unit, "telnet").sum() for unit in units]) / window,
        float(np.mean([answers.sources(unit).sum() for unit in units])),
        float(np.mean([answers.ends(unit).sum() for unit in units])),
        np.mean([answers.negation(unit).sum() for unit in units]) / window,
        negation_exits(rows, window, window, len(rows)).premature,
        float(np.mean([answers.common_sources(unit).sum() for unit in units])),
        np.mean([answers.joined(unit).sum() for unit in units]) / window,
        np.mean([answers.negation_joined(unit).sum() for unit in units]) / window,
    )


def test_counting_composites_in_query_5_gives_more_rows() -> None:
    """A negation pulled above the join has to count rows of the left input."""
    rows = make_connections(np.random.default_rng(1), 8_000)
    answers = Answers.of(rows, 2_000)
    units = range(4_000, 8_000, 200)
    assert np.mean([answers.negation_joined(unit).sum() for unit in units]) < 700
    assert np.mean([answers.composites_left(unit).sum() for unit in units]) > 4_000


@pytest.mark.parametrize("seed", SEEDS)
def test_answers_are_those_of_a_plain_simulation(seed: int) -> None:
    rows, window = make_connections(np.random.default_rng(seed), 400), 60
    answers = Answers.of(rows, window)
    for unit in range(0, 400, 17):
        live = range(max(0, unit - window + 1), unit + 1)
        one, two, three = (
            [
                (int(rows.src[link, i]), int(rows.dst[link, i]), rows.protocols[rows.protocol[link, i]])
                for i in live
            ]
            for link in range(LINKS)
        )
        ftp = [row for row in three if row[2] == "ftp"]
        by_source = answers.negation(unit).tolist()
        pairs = sum(a[0] == b[0] and a[2] == b[2] == "telnet" for a in one for b in two)
        assert answers.pairs(unit, "telnet").sum() == pairs
        assert answers.sources(unit).sum() == len({row[0] for row in one})
        assert answers.ends(unit).sum() == len({row[:2] for row in one})
        assert answers.common_sources(unit).sum() == len({a[0] for a in one} & {b[0] for b in two})
        assert answers.joined(unit).sum() == sum(a[0] == b[0] for a in one for b in ftp)
        for src in {row[0] for row in one + two}:
            minus = sum(a[0] == src for a in one) - sum(b[0] == src for b in two)
            assert by_source[src] == max(minus, 0)
        assert answers.negation_joined(unit).sum() == sum(by_source[row[0]] for row in ftp)


@pytest.mark.parametrize("seed", SEEDS)
def test_exits_of_the_negation_are_those_of_a_plain_simulation(seed: int) -> None:
    rows, window = few_sources(seed, 500), 40
    assert negation_exits(rows, window, 90, 500) == simulated_exits(rows, window, 90, 500)
    assert simulated_exits(rows, window, 90, 500).negative > 20


def few_sources(seed: int, units: int) -> Connections:
    rng = np.random.default_rng(seed)
    src = rng.integers(0, 7, (LINKS, units)).astype(np.int32)
    none = np.zeros((LINKS, units), np.int32)
    return Connections(("ftp",), none, none.astype(np.float64), none.astype(np.int64), src, none)


def simulated_exits(rows: Connections, window: int, since: int, until: int) -> Exits:
    answer: set[int] = set()
    negative = timed = 0
    for unit in range(until):
        live = range(max(0, unit - window + 1), unit + 1)
        minus: dict[int, int] = defaultdict(int)
        for i in live:
            minus[int(rows.src[1, i])] += 1
        youngest: dict[int, list[int]] = defaultdict(list)
        for i in live:
            youngest[int(rows.src[0, i])].append(i)
        now = {i for src, of in youngest.items() for i in of[min(len(of), minus[src]) :]}
        if unit >= since:
            for i in answer - now:
                timed += i == unit - window
                negative += i != unit - window
        answer = now
    return Exits(negative, timed)


def test_a_batch_has_the_rows_of_its_units(rows: Connections) -> None:
    batch = rows.batch(1, 100, 110)
    assert batch.timestamp.tolist() == [UNIT_MS * unit for unit in range(100, 110)]
    assert batch.columns[3].values.tolist() == rows.src[1, 100:110].tolist()
    names = [rows.protocols[code] for code in rows.protocol[1, 100:110]]
    assert batch.columns[1].to_arrow().to_pylist() == names


TRACE = """\
748162802.427995 1.24383 smtp 773 319 1 128.97.154.3 SF L
748162802.803033 3.96513 nntp 93 8281 2 128.48.60.2 SF NL
748162804.817224 1.02839 smtp 1051 326 2 128.97.154.3 SF
748162803.000001 ? telnet ? ? 2 192.0.2.1 REJ

748162812.254572 138.168 nntp 363238 1200 4 128.48.60.2 SF NL
748162813.1 0.5 ftp ? 20 5 128.97.154.3 S1 L
"""


def test_a_trace_is_read() -> None:
    rows = parse(TRACE.splitlines())
    # destinations: 128.97.154.3 and 128.48.60.2 twice each, then local host 2 twice
    assert len(rows) == 2
    found = {}
    for link in range(LINKS):
        names = tuple(rows.protocols[code] for code in rows.protocol[link])
        found[names] = link
    assert found.keys() == {("smtp", "ftp"), ("nntp", "nntp"), ("telnet", "smtp")}
    late = found["telnet", "smtp"]
    assert np.isnan(rows.duration[late]).tolist() == [True, False]
    assert rows.bytes[late].tolist() == [-1, 1_377]
    assert len(set(rows.dst[late].tolist())) == 1
    assert rows.bytes[found["smtp", "ftp"]].tolist() == [1_092, 20]
    column = rows.batch(late, 0, 2).columns[2]
    assert column.to_arrow().to_pylist() == [None, 1_377]


def test_a_compressed_trace_is_read(tmp_path: Path) -> None:
    with gzip.open(tmp_path / "trace.gz", "wt") as file:
        file.write(TRACE)
    (tmp_path / "trace").write_text(TRACE)
    one, other = read_trace(tmp_path / "trace.gz"), read_trace(tmp_path / "trace")
    assert np.array_equal(one.dst, other.dst)


@pytest.mark.parametrize(
    "line", ["748162802.4 1.2 smtp 773 319 1 128.97.154.3", "a b c", "1 2 smtp x 3 1 h SF"]
)
def test_a_line_that_is_no_connection_is_named(line: str) -> None:
    with pytest.raises(ValueError, match="line 2 is no connection"):
        parse(["748162802.427995 1.24383 smtp 773 319 1 128.97.154.3 SF L", line])
