"""Which steps brought history is known across restarts, as far as the disk allows."""

from __future__ import annotations

from pathlib import Path

from broker.archive.notes import HistoryNotes


def test_notes_survive(tmp_path: Path) -> None:
    path = tmp_path / "0.history.json"
    notes = HistoryNotes(path)
    assert notes.last(("a", "b")) == 0
    notes.put("a", 7)
    notes.put("b", 12)
    notes.put("a", 3)  # a replay says it again
    again = HistoryNotes(path)
    assert (again.last(("a",)), again.last(("a", "b")), again.last(())) == (7, 12, 0)


def test_damaged_and_unwritable_notes_stop_nothing(tmp_path: Path) -> None:
    path = tmp_path / "0.history.json"
    path.write_text("[1, 2")
    notes = HistoryNotes(path)
    assert notes.last(("a",)) == 0
    missing = HistoryNotes(tmp_path / "gone" / "0.history.json")
    missing.put("a", 5)
    assert missing.last(("a",)) == 5
