"""What a watched query shows before and after its first answer."""

from __future__ import annotations

import io

from rich.console import Console

from tureen.changes import SnapshotEvent
from tureen.columns import Column
from tureen.watching import Board


def shown(board: Board) -> str:
    console = Console(width=80, record=True, file=io.StringIO())
    console.print(board)
    return console.export_text()


def test_nothing_is_said_of_the_answer_before_it_was_fetched() -> None:
    board = Board(5)
    assert "waiting for the first answer" in shown(board)
    assert "0 rows" not in shown(board)
    board.apply(SnapshotEvent("1-1", None, (Column("city", "STRING"),), ()))
    assert "0 rows, nothing has come in yet" in shown(board)
