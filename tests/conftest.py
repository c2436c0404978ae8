"""Fixtures of every area: a real Kafka, and names that no other test uses."""

from __future__ import annotations

import gc
import os
import random
import shutil
import tempfile
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from broker.runtime.compiling import compile_once
from broker.runtime.garbage import collect_seldom
from tests import budgets
from tests import kafka as kafka_nodes
from tests import strategies as strategies  # registers the Hypothesis profiles

SHARED = pytest.StashKey[kafka_nodes.Node]()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--until",
        type=float,
        help="in an order by chance, each test a share of its own; none begins after this time, s since 1970",
    )


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Where several processes run the tests, all of them get the place of one Kafka; the first starts it."""
    stash = node.config.stash
    if SHARED not in stash:
        stash[SHARED] = kafka_nodes.Node(Path(tempfile.mkdtemp(prefix="tureen-kafka-")))
    node.workerinput["kafka"] = (str(stash[SHARED].data_dir), stash[SHARED].ports)


def pytest_unconfigure(config: pytest.Config) -> None:
    if shared := config.stash.get(SHARED, None):
        shared.stop()
        shutil.rmtree(shared.data_dir, ignore_errors=True)


@pytest.fixture(scope="session")
def kafka(request: pytest.FixtureRequest) -> Iterator[str]:
    """The bootstrap address of a Kafka shared by the whole run; name your topics by ``service_id``."""
    given = getattr(request.config, "workerinput", {}).get("kafka")
    with kafka_nodes.session(kafka_nodes.Node(Path(given[0]), given[1]) if given else None) as bootstrap:
        yield bootstrap


@pytest.fixture(scope="session")
def _private_kafka() -> Iterator[kafka_nodes.Node]:
    with kafka_nodes.node() as private:
        yield private


@pytest.fixture
def kafka_node(_private_kafka: kafka_nodes.Node) -> kafka_nodes.Node:
    """A running Kafka that the test may stop, kill and start again; others use it afterwards."""
    _private_kafka.start()
    return _private_kafka


@pytest.fixture
def service_id() -> str:
    """A prefix of topics that no other test uses."""
    return f"t{uuid.uuid4().hex[:12]}"


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Where the time of the run is over, what is left is skipped, which the last line counts."""
    if (until := item.config.option.until) is not None and time.time() > until:
        pytest.skip("the time is over")


@pytest.fixture(autouse=True)
def _no_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tables are as wide as in a pipe, whatever terminal the tests were started in."""
    monkeypatch.delenv("COLUMNS", raising=False)


TEST_S = 600
"""Most seconds of a test alone: the first Kafka of a machine is fetched before, which takes what it takes."""

HEAVIEST_FIRST = (
    "spark", "page", "broker/crash", "broker/results", "broker/outage", "broker/http/statements",
    "broker/templates", "broker/feeds", "broker", "client", "topics", "benchmarks_smoke", "demo", "storage",
    "differential",
)  # fmt: skip
"""Where several processes run the tests: what they begin with, so that none is left alone at the end. Spark's
share is the largest that stays whole, minutes long."""

TOGETHER = ("client", "page", "spark", "topics")
"""Folders whose tests share what is dear to start."""


def _share(nodeid: str, *, alone: bool = False) -> str:
    """What a process takes as a whole: a file, or a folder. alone: a test, where it shares nothing dear."""
    path = nodeid.partition("::")[0].removeprefix("tests/")
    folder = path.partition("/")[0]
    if folder in TOGETHER:
        return folder
    return nodeid if alone else path


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    from xdist.scheduler import LoadScopeScheduling

    class Shares(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return _share(nodeid, alone=config.option.until is not None)

    return Shares(config, log)


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Where durations are asked for, those of folders are told too, beside their budgets."""
    if config.option.durations is None:
        return
    reports = [one for some in terminalreporter.stats.values() for one in some if hasattr(one, "duration")]
    spent = budgets.by_folder((one.nodeid, one.duration) for one in reports)
    terminalreporter.section("time by folder")
    for line in budgets.lines(spent, budgets.budgets()):
        terminalreporter.write_line(line)


def pytest_configure(config: pytest.Config) -> None:
    """Processes that run the tests compile each kernel once; a JVM that ends soon compiles its code once."""
    collect_seldom()
    compile_once()
    os.environ.setdefault("SPARK_SUBMIT_OPTS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")


def pytest_collection_finish(session: pytest.Session) -> None:
    """What is there before the first test stays: the collector need not look at it again and again."""
    gc.collect()
    gc.freeze()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Whatever takes a Kafka fixture is marked, so that ``-m 'not kafka'`` leaves it out. It waits for other
    processes, so that where several processes run the tests it is tried a second time when it fails.
    """
    for item in items:
        if {"kafka", "kafka_node"} & set(getattr(item, "fixturenames", ())):
            item.add_marker(pytest.mark.kafka)
            if item.get_closest_marker("slow") is None:  # those have what the command says
                item.add_marker(pytest.mark.timeout(budgets.time_limit(config, TEST_S), func_only=True))
            if hasattr(config, "workerinput"):
                item.add_marker(pytest.mark.flaky(reruns=1))
    if config.option.until is not None:
        random.Random(config.getoption("hypothesis_seed")).shuffle(items)
    elif hasattr(config, "workerinput"):
        order = list(enumerate(HEAVIEST_FIRST))
        last = len(order)
        items.sort(
            key=lambda one: next((i for i, start in order if _share(one.nodeid).startswith(start)), last)
        )
