"""The board and the alerts of examples/grafana ask for what a broker shows."""

from __future__ import annotations

import json
import runpy
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import promql_parser as promql
import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

from tests.broker.conftest import stream_sql
from tests.broker.running import Broker
from tests.kafka import wait_until

FOLDER = Path(__file__).parents[3] / "examples" / "grafana"
RATE_INTERVAL = "$__rate_interval", "1m"
"""A variable of Grafana, and what it may stand for."""
OF_PROMETHEUS = {"up"}


def selectors(expression: str) -> Iterator[tuple[str, set[str]]]:
    """(metric, the labels that it is selected or summed by) of all that an expression reads."""
    found: list[tuple[str, set[str]]] = []
    grouped: set[str] = set()

    def visit(node: Any) -> bool:
        if isinstance(node, promql.AggregateExpr) and node.modifier is not None:
            grouped.update(node.modifier.labels)
        if isinstance(node, promql.VectorSelector):
            found.append((node.name, {matcher.name for matcher in node.matchers.matchers}))
        return True

    promql.walk(promql.parse(expression.replace(*RATE_INTERVAL)), visit)
    for name, labels in found:
        yield name, labels | grouped


def board() -> dict[str, Any]:
    made: dict[str, Any] = json.loads((FOLDER / "board.json").read_text())
    return made


def asked() -> list[str]:
    """All expressions."""
    panels = [panel for panel in board()["panels"] if panel["type"] != "row"]
    rules = [
        rule
        for group in yaml.safe_load((FOLDER / "alerts.yml").read_text())["groups"]
        for rule in group["rules"]
    ]
    assert len(panels) >= 16
    assert len(rules) >= 8
    targets = [target for panel in panels for target in panel["targets"]]
    return [one["expr"] for one in targets if "expr" in one] + [rule["expr"] for rule in rules]


@pytest.fixture(scope="module")
def shown(shared: Broker) -> dict[str, set[str]]:
    """The labels of each metric that a broker with a stream, a query and an answer shows; by sample."""
    name = "board_rows"
    shared.create(stream_sql(name))
    handle = shared.register(f"SELECT id FROM {name} WHERE v > 1 EMIT CHANGES")
    shared.send(name, [{"id": i, "v": i, "ts": 1_700_000_000_000 + i} for i in range(10)])
    wait_until(lambda: len(shared.rows(handle)) >= 7, what="rows are in")
    found = defaultdict[str, set[str]](set)
    for family in text_string_to_metric_families(shared.http.get("/metrics").text):
        found[family.name if family.type != "counter" else f"{family.name}_total"] |= set()
        for sample in family.samples:
            found[sample.name] |= set(sample.labels)
    return found


def test_the_board_is_what_its_table_makes() -> None:
    made = runpy.run_path(str(FOLDER / "board.py"))
    assert (FOLDER / "board.json").read_text() == made["text"]()


def test_panels_and_alerts_ask_for_metrics_that_are_there(shown: dict[str, set[str]]) -> None:
    for expression in asked():
        for metric, labels in selectors(expression):
            if metric in OF_PROMETHEUS:
                continue
            assert metric in shown, f"{metric} of {expression}"
            if shown[metric]:
                assert labels <= shown[metric], expression


def test_panels_do_not_overlap() -> None:
    taken = set[tuple[int, int]]()
    for panel in board()["panels"]:
        at = panel["gridPos"]
        cells = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
        assert at["x"] + at["w"] <= 24
        assert not cells & taken, panel["title"]
        taken |= cells


def test_alerts_have_a_summary_and_say_what_to_do() -> None:
    rules = yaml.safe_load((FOLDER / "alerts.yml").read_text())["groups"][0]["rules"]
    for rule in rules:
        assert set(rule["annotations"]) == {"summary", "description"}
        assert rule["labels"]["severity"] in ("page", "ticket")
