"""Each benchmark runs at a tiny size and gives its figures; it checks its own answers."""

import gc
import json
import math

import numpy as np
import pytest

from benchmarks import psoup
from benchmarks.harness import main
from benchmarks.peers.beside import compare
from benchmarks.peers.esper.process import Esper, epl
from benchmarks.peers.missing import PeerMissing
from benchmarks.peers.rerun import rerun
from benchmarks.resident import held_by

RUNS = {
    "selections": (
        "--queries 1,3 40 --rows 40000 --retain 10000 --no-peers",
        ["rows_per_s.q1", "rows_per_s.q3", "rows_per_s.q40", "register_s.q40"],
    ),
    "selections-strings": (
        "--queries 20 --keys 50 900 --rows 40000 --retain 10000",
        ["rows_per_s.k50", "rows_per_s.k900", "ratio_to_integers.q20.k900"],
    ),
    "selections-selective": (
        "--queries 1 40 --rows 40000 --retain 10000",
        ["rows_per_s.q40", "register_s.q1", "restart_s.q40", "resident_bytes_per_query.q40"],
    ),
    "tpch": (
        "--scale 0.002 --queries q03 q17 q22 --repeats 1",
        ["rows_per_s.q03", "answer_ms.q17", "duckdb_ms.q22", "rows_per_s.min", "register_ms.sum"],
    ),
    "memory": ("--queries 300 --rows 100000 --standing 20 --no-broker", ["bytes_per_query", "bytes_per_row"]),
    "swapped": (
        "--queries 12000 --warm 5000 --rows 2000 --times 5 --no-broker",
        ["resident_mb", "swapped_in_ms.p99", "disk_bytes_per_query", "registrations_per_s", "restart_s"],
    ),
    "growth": (
        "--sizes 2 20 --steps 3",
        ["exponent.streams", "calls.joins.n20", "time_exponent.strings", "ms.retained.n2"],
    ),
    "period": (
        "--rows 20000 --instants 300 --times 1",
        ["ms.selection", "ratio_to_instants.groups", "rows.join", "ratio_to_duckdb.join"],
    ),
    "cold": (
        "--rows 150000 --times 1",
        ["ratio_to_warm.invocation", "ms.join.cold", "memory_mb.cold", "column_mb", "data_rate_ratio"],
    ),
    "chain": (
        "--rows 512 --bursts 2 --modules 30 --repeats 1",
        [
            "held.fifo",
            "held.chain",
            "chain_to_fifo",
            "peak_bytes.chain",
            "delay_ms.p99.fifo",
            "scheduler_share",
        ],
    ),
    "overload": (
        "--seconds 0.4 --times 3 --queries 4 --step 512 --reserve 2000000 --warm 0.1",
        [
            "capacity_rows_per_s",
            "rows_per_s.x3",
            "queue_bytes.max.x3",
            "weighted_error.optimal.x3",
            "weighted_error.uniform.x3",
        ],
    ),
    "precision": (
        "--queries 40 --shapes 4 --problems 2 --cases DISTINCT",
        ["loss.optimal", "loss_ratio_to_grid", "solve_ms", "resolve_ms", "error_fp.max", "error_fn.max"],
    ),
    "k-constraints": (
        "--rows 20000 --none-rows 8000 --k 0 100 --open 500 --kind-rows 20000",
        ["state_rows.k0", "state_rows.k100", "state_rows.none", "stored_fulfilments.k0", "kept_rows.groups"],
    ),
    "sharing": (
        "--queries 10 --rate 5 --rows 2000 --alone 2 --keys 50",
        ["bytes_ratio_to_widest", "rows_per_s.shared", "rows_per_s.unshared", "shared_to_unshared"],
    ),
    "dense": (
        "--queries 700 --batch 8192 --warm 1",
        ["worst_batch_ms.dense700", "median_batch_ms.dense700", "rows_per_s.dense700"],
    ),
    "churn": ("--cycles 60 --standing 20", ["bytes_grown_per_cycle", "cycles_per_s"]),
    "registration": (
        "--rows 20000 --standing 30 --times 3 --bulk 40 --no-broker",
        ["alone_ms", "answered_ms", "stall_ms.p99", "engine_bulk_per_s"],
    ),
    "followed": (
        "--queries 40 --shapes 1 4 --steps 20",
        [
            *("ms_per_step.all", "ms_per_step.shapes4", "deltas_per_s", "state_bytes_per_group"),
            *("rows_per_s.eager", "rows_per_s.lazy"),
        ],
    ),
    "entities": (
        "--entities 300 --steps 12 --edits 12",
        ["list_ms", "report_ms", "statistics_share", "edit_stall_ms.p99", "edit_stall_ms.buffers"],
    ),
    "hydrate": (
        "--rows 100000 --more 3 --queries 50",
        ["ms.group", "ms.more", "ms.more64", "rows_visited.more", "restart_s", "changes.restart"],
    ),
    "formats": (
        "--batches 2",
        [
            "records_per_s.json",
            "records_per_s.csv",
            "records_per_s.avro",
            "records_per_s.debezium",
            "nested_ratio",
        ],
    ),
    "deltas": (
        "--ops group min_max join --batches 2",
        ["rows_per_s.group", "rows_per_s.min_max", "deltas_per_s.join.b64"],
    ),
    "followed-join": (
        "--window 20000 --rounds 2",
        ["rows_per_s", "bytes_per_row.changes.rows", "bytes_per_row.changes.keys", "bytes_per_row.stored"],
    ),
    "over": (
        "--rows 20000 --before 10000 --window 2000 --keys 100 --queries 5 --rounds 2",
        [f"rows_per_s.{way}.{op}" for way in ("lazy", "followed", "followed_many") for op in ("lag", "min")],
    ),
    **{
        f"upa-fig{number}": (
            "--windows 200,400 --times 1 --rounds 2",
            [f"{figure}.nt.w400" for figure in ("rows_per_s", "us_per_1000", "work_per_1000", "state_bytes")],
        )
        for number in (9, 10, 11, 12, 13, 14, 15, 16)
    },
    "upa-operators": (
        "--windows 300 --times 1 --rounds 2 --strategies nt",
        [f"rows_per_s.{of}.nt.w300" for of in ("group", "intersect", "union", "table", "nrr")],
    ),
    "upa-shared": (
        "--windows 300 --queries 20,40 --rounds 2",
        [f"rows_per_s.{of}.q20" for of in ("distinct.dense", "distinct.narrow", "except.dense")],
    ),
    "upa-fig17": (
        "--windows 300 --times 1 --rounds 2",
        ["rows_per_s.ntjoinup.w300", "rows_per_s.upa10.w300", "rows_per_s.bag_indexed.w300", "answer.w300"],
    ),
    "upa-cost": (
        "--windows 300 --times 1 --rounds 2 --queries fig11 fig15 --strategies nt upa10 auto",
        ["model_error.max", "auto_to_best.max", "predicted_per_1000.fig11.nt.w300"],
    ),
    "upa-buffers": (
        "--live 2000 --partitions 1 10 --intervals 0.05 0.5",
        ["ns_per_entry.p10", "visited_per_negative.p1", "bytes_per_live.i0.5", "held_per_live.i0.05.scanned"],
    ),
    "upa-expiry": (
        "--window 3000 --times 1 --strategies nt upa10",
        ["jump_ms", "deletions_per_s", "engine_deletions_per_s.upa10"],
    ),
    **{
        f"promising-fig{number}": (
            "--gaps 100 --seconds 6 --step-ms 400",
            [f"{figure}.{line}.gap100" for figure in figures for line in lines],
        )
        for number, figures, lines in (
            (11, ("pct_of_exact",), ("pt", "shj_oldest", "shj_newest", "skip", "index")),
            (12, ("pct_of_exact", "distance_s"), ("pt_count", "pt_density", "shj_newest")),
            (13, ("pct_of_exact", "hist_mse"), ("pt", "shj_oldest", "skip")),
            (14, ("pct_of_exact", "pct_outliers"), ("pt", "shj_oldest", "index")),
        )
    },
    "promising-fig9": (
        "--seconds 6 --step-ms 400 --clock wall",
        ["insert_units.t4", "insert_ns.t2", "visits_per_hit.t1", "hit_ns.t4", "out_per_in.t3"],
    ),
    "promising-fig10": (
        "--gaps 50 --windows 20 --seconds 6 --step-ms 400",
        ["out_per_in.gap50.t1", "out_per_in.gap50.t4", "out_per_in.window20.t3"],
    ),
    "promising-fig15": (
        "--gaps 100 --queries 20 --seconds 13",
        ["pct_of_exact.pt.gap100", "pct_of_exact.simple.gap100", "pct_of_exact.pt.q20"],
    ),
    "promising-fig16": (
        "--gaps 100 --seconds 62 --step-ms 2000 --queries 10",
        ["mse_avg.pt.gap100", "mse_sum.simple.gap100", "mse_sum.pt_remainder.gap100"],
    ),
    "promising-wall": (
        "--times 2 --wall-seconds 0.4 --sustained 20",
        [
            "exact_rows_per_s",
            "delay_ms.p99.x2",
            "ratio_to_skip.x2",
            "pct_outliers.asc.x2",
            "hist_mse.skip.x2",
        ],
    ),
    "promising-insert": (
        "--rows 60000 --repeats 1 --reaches 4",
        [
            *(f"rows_per_s.t{structure}" for structure in (1, 2, 3, 4)),
            "estimates_per_s",
            "bytes_per_summary",
            "bytes_grown",
        ],
    ),
    "promising-zones": ("--runs 1 --rows 6000", ["lag_rows", "false_cuts_per_20000"]),
    "promising-overhead": (
        "--rows 40000 --queries 20 --stretches 2 --window 1000",
        ["rows_per_s.plain", "rows_per_s.summarised", "ratio_to_plain"],
    ),
    "invocation": (
        "--rows 20000 --queries 2 --times 2",
        ["engine_ms", "ratio_to_duckdb", "count_ratio_to_duckdb", "aggregates_ratio_to_duckdb"],
    ),
    "aggregates": (
        "--queries 3,12 --rows 30000 --window 1000 --retain 20000 --times 2",
        ["rows_per_s.q3", "rows_per_s.q12", "subwindow_ms"],
    ),
    "psoup-table2": ("--window 500 --queries 4 --times 2", [f"response_ms.psoup_c.i{n}" for n in (1, 2, 4)]),
    "psoup-fig7": (
        "--windows 16,300 --queries 4 --times 2",
        ["response_ms.equality.nomat.w16", "response_ms.interval.psoup_p.w300"],
    ),
    "psoup-causes": (
        "--intervals 2 --window 512 --queries 4 --times 2 --sides 16 --unshared 2 --budget 0.1",
        ["by_rows_ms.psoup_c.i2", "fixed_ms.nomat", "kept_pairs_ms.w16", "idle_share.q2"],
    ),
    "psoup-traffic": (
        "--windows 16 256 --standing 4 --times 2 --rate-windows 50 --queries 1 3 --batches 2",
        ["response_ms.psoup_p.w16", "rows_per_s.eager.unshared.w50.q3", "bytes.answers.psoup_c"],
    ),
    "psoup-fig8": ("--windows 4 16 --queries 3 --times 2", ["response_ms.nomat.w16", "pairs.w4"]),
    "psoup-fig9-selections": (
        "--queries 1,5 --window 100 --batches 5",
        ["rows_per_s.lazy.shared.q5", "rows_per_s.eager.unshared.q5"],
    ),
    "psoup-fig9-joins": (
        "--queries 1,5 --window 100 --batches 5",
        ["rows_per_s.lazy.shared.q5", "rows_per_s.lazy.probing.q5", "rows_per_s.eager.unshared.q5"],
    ),
    "psoup-fig11": (
        "--windows 2,150 --times 2",
        ["ms.eq_ineq.composite.w150", "ms.ineq_eq.kept.w2", "ms.ineq_ineq.separate.w150"],
    ),
    "band": (
        "--rows 400 --times 2",
        ["ms.band", "duckdb_ms.hundredth", "ratio_to_duckdb.asof", "rows_out.pairs", "ms.filtered"],
    ),
    "join": (
        "--queries 1,30 --rows 60000 --window 1000 --keys 100 --no-peers",
        ["rows_per_s.q30", "matches_per_row.q1", "answer_ms.q30"],
    ),
    "join --selective": (
        "--queries 1,30 --rows 60000 --window 1000 --keys 100",
        ["rows_per_s.q30", "indexed_share.q30", "probing_share.q1", "kept_share.q30", "ratio_to_wanted.q1"],
    ),
    "cacq-table3": (
        "--batches 30 --times 1",
        ["overhead_against_best", *(f"visits_per_tuple.{p}" for p in ("tickets", "worst", "optimal"))],
    ),
    "a-greedy": (
        "--stable 12 --watched 40 --short 40",
        ["visits_per_tuple.a-greedy", "visits_per_tuple.best", "batches_to_adapt", "profile_share"],
    ),
    "cacq-table4": ("--stable 30 --watched 60", ["batches_to_adapt", "batches_to_adapt.w3"]),
    "cacq-niagara": ("--queries 1,5 --updates 3", ["ms_per_update.cacq.q5", "ms_per_update.pull_up.q1"]),
    "cacq-udf": (
        "--articles 1,3 --queries 4 --updates 2 --batches 3",
        ["ratio_to_pull_up.a3", "order_ns_per_row.tickets"],
    ),
}

BROKER_RUNS = {
    "query-list": (
        "--queries 300 --rounds 3 --rows 100",
        ["first_ms", "page_ms.p99", "search_ms.p99", "shapes_ms.p99", "other_ms.p99", "bytes_per_query"],
    ),
    "page": (
        "--queries 50 --pages 3 --rate 100 --seconds 0.5 --updates 3 --no-browser",
        ["cpu_share", "mb", "frames_per_s", "update_ms.p50", "update_ms.p99"],
    ),
    "snapshots": (
        "--queries 20 --rate 50 --records 500 --seconds 1",
        ["per_s", "ms.p50", "ms.p99", "rows.max", "bare_ms.p99", "duckdb_ms.p99"],
    ),
    "changes": (
        "--records 3000 --emitting 5 --rate 1000 --queries 100 --seconds 1",
        ["deltas_per_s", "deltas_per_s.windows", "deltas_per_s.groups", "delay_ms.p50", "delay_ms.p99"],
    ),
    "lag": (
        "--rows 200 --pairs 400 --only violations,followers",
        ["lag_s.none", "lag_s.violations", "lag_s.followers", "lag_s.max", "took_s.followers"],
    ),
    "postgres": (
        "--groups 3 --rate 500 --rows 2000 --connections 20 --seconds 0.5",
        ["answers_per_s", "http_answers_per_s", "ms.p99", "copy_rows_per_s", "idle_mb"],
    ),
    "trickle": (
        "--streams 2 --rate 20 --queries 4 --seconds 1",
        ["cpu_share", "worker_cpu_share", "kafka_cpu_share", "steps_per_s", "delay_ms.p50", "delay_ms.p99"],
    ),
}
"""By benchmark of a whole broker, with a Kafka of its own: its options and the figures that it gives."""


@pytest.fixture(scope="module", autouse=True)
def _own_garbage() -> None:
    """Benchmarks collect garbage before they measure: they need not look at what earlier tests left there."""
    gc.collect()
    gc.freeze()


@pytest.mark.parametrize("name", RUNS)
def test_a_benchmark_runs(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    arguments, keys = RUNS[name]
    assert main([*name.split(), "--json", *arguments.split()]) == 0
    figures = json.loads(capsys.readouterr().out)["figures"]
    assert set(keys) <= set(figures)
    assert all(math.isfinite(value) for value in figures.values())


@pytest.mark.slow
@pytest.mark.kafka
@pytest.mark.parametrize("name", BROKER_RUNS)
def test_a_benchmark_of_a_broker_runs(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    arguments, keys = BROKER_RUNS[name]
    assert main([name, "--json", *arguments.split()]) == 0
    assert set(keys) <= set(json.loads(capsys.readouterr().out)["figures"])


def test_numbers_must_be_numbers(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["selections", "--queries", "1,many"])
    assert "takes numbers" in capsys.readouterr().err


def test_held_by_counts_each_memory_once_and_bits_apart() -> None:
    bits, plain = np.zeros(1_000, np.uint64), np.zeros(500, np.int32)
    text = "a text of its own" * 10
    held = held_by([bits, bits[10:], {"view": plain[3:], "same": plain}, text], [text])
    assert held.bits == bits.nbytes
    assert plain.nbytes < held.plain < plain.nbytes + 1_000
    assert held_by([text]).plain > held_by([text], [text]).plain + len(text)


def _workload() -> tuple[psoup.Rows, psoup.Bounds, list[int]]:
    rng = np.random.default_rng(3)
    rows, bounds = psoup.make_rows(rng, 900), psoup.make_bounds(rng, 12)
    bounds[0] = (0, 256)  # a query without a predicate
    return rows, bounds, [int(psoup.matches(one, rows.values).sum()) for one in bounds]


def test_duckdb_runs_every_query_again_over_a_batch() -> None:
    rows, bounds, expected = _workload()
    assert rerun(rows.values, bounds, 60).counts.tolist() == expected
    with pytest.raises(PeerMissing, match="are granted"):
        rerun(rows.values, bounds, 0.0)


def test_counts_are_compared_query_by_query() -> None:
    rows, bounds, expected = _workload()
    counts = np.array(expected)
    compare("peer", counts, rows, bounds)
    counts[7] += 1
    with pytest.raises(RuntimeError, match="q7: peer"):
        compare("peer", counts, rows, bounds)


def test_epl_has_constants_as_parameters() -> None:
    bounds = np.array([[0, 256], [32, 64], [0, 256], [0, 224]])
    assert epl(bounds) == "select * from psoup(b in [?::int:?::int), d in [?::int:?::int))\t32\t64\t0\t224"


def test_esper_hands_over_the_same_matches() -> None:
    try:
        esper = Esper()
    except PeerMissing as missing:
        pytest.skip(f"Esper does not run here: {missing}")
    rows, bounds, _ = _workload()
    try:
        run = esper.run(rows.values, bounds, 0.3)
    finally:
        esper.close()
    counted = [int(psoup.matches(one, rows.first(run.rows).values).sum()) for one in bounds]
    assert run.counts.tolist() == counted
    assert 1 <= run.rows <= len(rows)
    assert run.deploy_s > 0
