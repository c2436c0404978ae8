"""Readers of formats are compiled by a process of their own; who needs one waits for it, within bounds."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from broker.runtime.compiling import is_compiled
from broker.runtime.reader_compilation import ReaderBeingCompiled, ReaderCompilation
from tests.broker.uncompiled import WAITS, uncompiled
from tests.kafka import wait_until
from topics.formats.kernels import KERNELS

COMPILES = """
import sys, time
sys.path[:0] = {paths!r}
import kernels
from broker.runtime.reader_compilation import compile_all
compile_all(int(sys.argv[1]), sys.argv[2:], lambda name: {compiles})
"""
FAILS = ("-c", "raise SystemExit(1)")
ROOT = str(Path(__file__).parents[3])


@pytest.fixture
def kernels(tmp_path: Path) -> ModuleType:
    """Kernels that nobody has compiled."""
    return uncompiled(tmp_path)


@pytest.fixture
def stopped() -> Iterator[list[ReaderCompilation]]:
    """What is stopped after a test."""
    made: list[ReaderCompilation] = []
    yield made
    for one in made:
        one.stop()


def compilation(
    kernels: ModuleType, program: tuple[str, ...], stopped: list[ReaderCompilation]
) -> ReaderCompilation:
    made = ReaderCompilation({"one": kernels.one, "two": kernels.two}, program)
    stopped.append(made)
    made.begin()
    return made


def compiling(kernels: ModuleType, compiles: str) -> tuple[str, str]:
    paths = [str(Path(str(kernels.__file__)).parent), ROOT]
    return "-c", COMPILES.format(paths=paths, compiles=compiles)


def test_what_is_needed_is_waited_for_and_the_rest_follows(
    kernels: ModuleType, stopped: list[ReaderCompilation]
) -> None:
    assert not is_compiled(kernels.one)
    made = compilation(kernels, compiling(kernels, "getattr(kernels, name)(1)"), stopped)
    asyncio.run(made.ready(["two", "json"], 120))
    assert is_compiled(kernels.two)
    assert not kernels.two.signatures  # by the other process
    wait_until(lambda: not made.is_running, 120, "all is compiled")
    assert is_compiled(kernels.one)
    made.begin()
    assert not made.is_running


def test_nobody_waits_for_ever(kernels: ModuleType, stopped: list[ReaderCompilation]) -> None:
    made = compilation(kernels, WAITS, stopped)
    asyncio.run(made.ready(["json"], 0.2))  # is read without
    with pytest.raises(ReaderBeingCompiled, match="what reads one is being compiled"):
        asyncio.run(made.ready(["one"], 0.2))
    made.stop()
    asyncio.run(made.ready(["one"], 0.2))  # whoever needs it compiles it


def test_a_process_that_fails_is_not_waited_for(
    kernels: ModuleType, stopped: list[ReaderCompilation]
) -> None:
    made = compilation(kernels, FAILS, stopped)
    asyncio.run(made.ready(["one"], 60))
    assert not is_compiled(kernels.one)


def test_it_ends_with_the_process_that_began_it(
    kernels: ModuleType, stopped: list[ReaderCompilation]
) -> None:
    made = compilation(kernels, compiling(kernels, "time.sleep(600)"), stopped)
    process: Any = made._process
    process.stdin.close()
    assert process.wait(60) != 0


def test_readers_are_of_formats_that_have_kernels() -> None:
    assert set(KERNELS) == {"csv", "avro", "protobuf"}
