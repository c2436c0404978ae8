"""What goes to files and between tasks comes back as it was."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.model.batch import Batch, Column
from engine.model.source import Derived, Field, Schema, SourceName, Stream
from engine.model.step import CreateDerived, CreateSource, DropSource, Registration
from engine.model.types import BOOLEAN, DATE, DOUBLE, INTEGER, STRING, TIMESTAMP, decimal
from spark_jobs.errors import CheckpointMismatch, CheckpointUnreadable, PathNotWritable
from spark_jobs.scale_out.journal import Journal, LastDone, Pending
from spark_jobs.scale_out.micro_batch import (
    WRITERS_MAX,
    ClockState,
    MicroBatch,
    Plan,
    RecordRange,
    SourceStep,
)
from spark_jobs.scale_out.pieces import RawRecord, read_letters, read_piece, to_letters, to_piece

TYPES = (BOOLEAN, INTEGER, DOUBLE, STRING, DATE, TIMESTAMP, decimal(9, 2))
SCHEMA = Schema(tuple(Field(f"c{n}", type_) for n, type_ in enumerate(TYPES)))
STREAM = Stream(SourceName("s"), SCHEMA, "topic")
SQL = "CREATE STREAM s (c0 BOOLEAN)"
VIEW = Derived(SourceName("v"), "SELECT 1", False)


@st.composite
def batches(draw: st.DrawFn) -> Batch:
    n = draw(st.integers(0, 5))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    columns = []
    for type_ in TYPES:
        valid = rng.random(n) < 0.7
        if type_ is STRING:
            texts = rng.choice(["", "a", "é"], n).tolist()
            values = [text if known else None for text, known in zip(texts, valid, strict=True)]
            columns.append(Column.from_arrow(STRING, pa.array(values, pa.string())))
        else:
            drawn = rng.integers(0, 2 if type_ is BOOLEAN else 90, n).astype(type_.dtype)
            columns.append(Column(type_, drawn, None if valid.all() else valid))
    times = rng.integers(-9, 9, n)
    return Batch(SCHEMA, tuple(columns), np.zeros(n, np.int32), np.arange(n), times)


@given(batches())
def test_rows_come_back_from_a_piece(rows: Batch) -> None:
    found = read_piece(to_piece(rows), STREAM)
    assert found.to_arrow().equals(rows.to_arrow())
    assert found.timestamp.tolist() == rows.timestamp.tolist()
    assert found.offset.tolist() == rows.offset.tolist()


def test_a_piece_has_each_string_of_its_rows_once() -> None:
    texts = Column.decoded(STRING, pa.array(["a", "b", "a", "others"]))
    places = np.arange(4)
    schema = Schema((Field("k", STRING),))
    rows = Batch(schema, (texts,), np.zeros(4, np.int32), places, places).take(np.array([0, 2, 1, 0]))
    found = read_piece(to_piece(rows), Stream(SourceName("s"), schema, "s")).columns[0]
    assert found.dictionary == pa.array(["a", "b"])
    assert found.to_arrow().to_pylist() == ["a", "a", "b", "a"]


def test_letters_come_back() -> None:
    records = [
        RawRecord(-1, "not JSON", 3, None, b"\xff", [("h", None), ("g", b"1")]),
        RawRecord(0, None, 4, b"k", None, []),
    ]
    assert read_letters(to_letters(records)) == records
    assert to_letters([]) is None
    assert read_letters(None) == []


def _batch(number: int) -> MicroBatch:
    ranges = (RecordRange(0, 1, 5), RecordRange(1, 0, 0))
    step = SourceStep(STREAM.name, "topic", ranges, frozenset([1]), ClockState(), "nT0w", lost=number > 7)
    return MicroBatch(
        number,
        2,
        1_000,
        1,
        (
            CreateSource(STREAM, SQL),
            CreateDerived(Derived(SourceName("v"), "SELECT 1", False)),
            CreateDerived(Derived(SourceName("t"), "SELECT 1", False, True)),
            DropSource(SourceName("x")),
        ),
        ("gone",),
        (Registration("came", "SELECT ?", options={"maintenance": "lazy"}, parameters=(1, None)),),
        {"came": "rows"},
        {"came": STREAM.name},
        (step,),
    )


def test_a_journal_gives_back_what_was_written_and_forgets_what_nobody_needs(tmp_path: Path) -> None:
    journal = Journal(str(tmp_path / "new"))
    assert journal.done() == LastDone()
    assert journal.find("begun", 1) is None
    plan = Plan(
        1,
        ((STREAM, SQL),),
        (Derived(SourceName("v"), "SELECT 1", True), Derived(SourceName("t"), "SELECT 1", False, True)),
        ((Registration("q", "SELECT"), "lane"),),
        ((Registration("p", "SELECT"), {"code": "changes_broken"}),),
    )
    journal.write_plan(plan)
    assert journal.read_plan(1) == plan
    waiting = Pending("s", 0, 4, 2, 77)
    for number in range(1, 9):
        journal.write("begun", _batch(number))
        journal.write("batches", _batch(number))
        done = LastDone(number, 2, (waiting,), {"q": {"code": "changes_broken"}})
        journal.finish(done, plan=1, needed=4)
    again = Journal(str(tmp_path / "new"))
    assert again.done() == done
    assert again.read(8) == _batch(8)
    assert again.read(4) == _batch(4)
    with pytest.raises(CheckpointUnreadable):
        again.read(3)
    assert _batch(3).position(WRITERS_MAX - 1) < _batch(4).position(0)


def test_files_of_others_are_refused(tmp_path: Path) -> None:
    journal = Journal(str(tmp_path))
    journal.put("done.json", {"v": 99})
    with pytest.raises(CheckpointMismatch):
        journal.done()
    journal.directory.write("done.json", b"{")
    with pytest.raises(CheckpointUnreadable):
        journal.done()
    (tmp_path / "file").write_text("")
    with pytest.raises(PathNotWritable):
        Journal(str(tmp_path / "file")).write("begun", replace(_batch(1)))
