"""What the topics of sources held when their reading began, until all of it is in answers.

A source *catches up* from the moment it is created, or comes back after a restart, until it has read to where
its topic ended then and the rows are not above NOW any more. Records that came after that end show that its
time goes on: then NOW tells how far answers reach, as it does of any stream, and the source has caught up.
So an answer over nothing but what happens to be read so far does not pass for a whole one.

Used by the shard's thread alone. Nothing of it is journalled: it tells of answers and changes none.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from engine.model.answer import CatchingUp
from engine.model.source import SourceName
from engine.views.view import View


@dataclass(frozen=True, slots=True)
class _Held:
    """Where the partitions began and ended, of those that held something unread."""

    begins: Mapping[int, int]
    ends: Mapping[int, int]


class CatchUps:
    """Tracks which sources of a shard catch up. A source is here from when it is added, whether or not Kafka
    answers.
    """

    def __init__(self) -> None:
        self._held: dict[SourceName, _Held | None] = {}
        """By source; None where Kafka has not told yet what its topic holds."""
        self._lost: set[SourceName] = set()

    def begin(self, name: SourceName) -> None:
        """A source is to be read."""
        self._held[name] = None
        self._lost.discard(name)

    def found(self, name: SourceName, begins: Mapping[int, int], ends: Mapping[int, int]) -> None:
        """Where its reading begins, 0 where that is not told, and where its topic ends now."""
        unread = {number: end for number, end in ends.items() if end > max(0, begins.get(number, 0))}
        if not unread:
            self.forget(name)
        else:
            self._held[name] = _Held({one: max(0, begins.get(one, 0)) for one in unread}, unread)

    def lose(self, name: SourceName) -> None:
        """It reads no more: if it has not caught up, it never will."""
        self._lost.add(name)

    def forget(self, name: SourceName) -> None:
        """It is dropped, or has caught up."""
        self._held.pop(name, None)
        self._lost.discard(name)

    def told(self, view: View) -> View:
        """The view, which says how far its sources are. Those that have caught up in it are forgotten.
        O(partitions of those that have not).
        """
        if not self._held and not view.is_catching_up:
            return view
        found = {}
        for name, held in list(self._held.items()):
            one = _told(view, name, held)
            if one is None:
                self.forget(name)
            else:
                found[str(name)] = replace(one, lost=name in self._lost)
        return view.with_catching_up(found)


def _told(view: View, name: SourceName, held: _Held | None) -> CatchingUp | None:
    """Tell how far a source is with catching up; None: it has caught up."""
    source = view.source(name)
    if source is None or held is None:
        return CatchingUp(name, 0, None, 0)
    read_to = source.next_offsets
    waiting = sum(map(len, source.waiting))
    left = sum(max(0, end - read_to.get(number, 0)) for number, end in held.ends.items())
    passed = any(at > held.ends.get(number, at) for number, at in read_to.items())
    if not left and (not waiting or passed):
        return None
    of = sum(end - held.begins[number] for number, end in held.ends.items())
    return CatchingUp(name, max(0, of - left), of, waiting)
