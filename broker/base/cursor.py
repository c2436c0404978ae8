"""Change positions: after which step, and at which instant of its own time, a reader knows an answer.

    epoch-sequence-now-shard.born.life-tag        7-1042-1700000000000-3.17.k5tq2a-wbpy4m

now: NOW of the query after that step, ``n`` before it has one. shard.born: where the query is and the
sequence number of the step that registered it, so that a position of an earlier query under the same handle
is told apart. life: of the journal, whose numbers begin anew when it is lost; positions of earlier versions
have none. tag: the first characters of the query id. Clients see one opaque word; this is the only place
that makes and reads it.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass

from engine.model.step import Position
from tureen.errors import MustRefetch, PositionRefused

TAG_CHARACTERS = 6
LIFE_CHARACTERS = 6
_TEXT = re.compile(
    r"(\d{1,18})-(\d{1,18})-(n|-?\d{1,19})-(\d{1,6})\.(\d{1,18})(?:\.([a-z2-7]{6}))?-([a-z2-7]{6})", re.ASCII
)
_LOST = "the broker has lost its journal since: ask again without a position"
ALTERED_HINT = "the query's text is another one since: ask again without a position"
_HINT = "give one from a feed or a snapshot of this query, or none"


@dataclass(frozen=True, slots=True)
class Birth:
    """What tells one registration of a query from any other: its id, its shard, the step that made it, and
    the :func:`life_of` the shard's journal.
    """

    query_id: str
    shard: int
    sequence: int
    life: str

    @property
    def tail(self) -> str:
        """The end of all positions of it."""
        return f"{self.shard}.{self.sequence}.{self.life}-{self.query_id[:TAG_CHARACTERS]}"


def life_of(topic_id: str) -> str:
    """What positions of a journal have in common, by the id of its topic; another topic's differs."""
    return base64.b32encode(hashlib.sha256(topic_id.encode()).digest()).decode().lower()[:LIFE_CHARACTERS]


@dataclass(frozen=True, slots=True)
class Cursor:
    """Where a reader of a query's changes stands: it knows the answer after this step, at this NOW."""

    position: Position
    now_ms: int | None
    birth: Birth

    def __str__(self) -> str:
        now = "n" if self.now_ms is None else self.now_ms
        return f"{self.position}-{now}-{self.birth.tail}"

    @classmethod
    def parse(cls, text: str, births: Sequence[Birth], reached: Position) -> Cursor:
        """A position that a client gives for this query. births: those of its query that are known, at least
        one. reached: the shard's last step that is shown.

        Raises PositionRefused: malformed, or of another query. MustRefetch: it is of an earlier query under
        the same handle, from before an alteration that is no longer known, or of steps that were lost.
        """
        found = _TEXT.fullmatch(text)
        if found is None:
            raise PositionRefused("this is not a change position", hint=_HINT)
        epoch, sequence, now, shard, born, life, tag = found.groups()
        if tag != births[0].query_id[:TAG_CHARACTERS]:
            raise PositionRefused("this change position belongs to another query", hint=_HINT)
        birth = next((one for one in births if (one.shard, one.sequence) == (int(shard), int(born))), None)
        if birth is None:
            raise MustRefetch(hint=ALTERED_HINT)
        if life != birth.life:
            raise MustRefetch(hint=_LOST)
        position = Position(int(epoch), int(sequence))
        if position.sequence > reached.sequence or position.epoch > reached.epoch:
            raise MustRefetch(hint=_LOST)
        return cls(position, None if now == "n" else int(now), birth)
