"""What an answer says of itself besides its rows, on stderr: wherever its rows go, somebody reads this."""

from __future__ import annotations

from collections.abc import Iterator

from tureen import cells, console
from tureen.changes import SnapshotEvent
from tureen.incomplete import incomplete
from tureen.not_computed import not_computed
from tureen.snapshot import Snapshot


def show(answer: Snapshot, rows: str, *, stands: bool) -> None:
    """Show of what an answer is true, where its changes go on, and one line for each way in which it is not
    exact or not whole. rows: what is told first. stands: it can be followed.
    """
    now = "nothing has come in yet" if answer.now is None else f"NOW {cells.instant(answer.now)} UTC"
    lines = [f"{rows}, {now}, position {answer.position}"]
    if stands and answer.change_position is not None:
        lines.append(f"to follow changes from here: tureen watch HANDLE --since {answer.change_position}")
    if answer.archive_rows is not None:
        reach = "has all there ever was"
        if answer.earliest_ms is not None:
            reach = f"reaches back to {console.instant_of_ms(answer.earliest_ms)} UTC"
        lines.append(f"with {answer.archive_rows:,} rows of the archive, which {reach}")
    for line in lines:
        console.err().print(line, style="dim", markup=False, soft_wrap=True)
    show_remarks(answer)
    console.show_lost(answer.late, answer.dead_letters, answer.counted_from_ms)


def show_remarks(answer: Snapshot | SnapshotEvent) -> None:
    """Show these lines, but for those about lost records."""
    for line in of(answer):
        console.err().print(line, style="yellow", markup=False)


def of(answer: Snapshot | SnapshotEvent) -> Iterator[str]:
    """The lines, but for lost records."""
    yield from incomplete(answer.catching_up, answer.complete_from_ms)
    for tag in answer.approximation:
        yield f"approximate: {cells.cell(str(tag))}"
    yield from not_computed(answer.condition_errors, answer.errors)
