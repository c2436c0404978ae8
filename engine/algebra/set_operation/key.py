"""What tells rows of UNION, INTERSECT and EXCEPT apart."""

from __future__ import annotations

from engine.algebra.set_operation.stage import SetOperation
from engine.changes.result_key import KnownColumns


def known_above(stage: SetOperation, left: KnownColumns, inner: KnownColumns | None) -> KnownColumns:
    """UNION ALL keeps what is known of both sides and has no key: a row of one side may equal a row of the
    other. EXCEPT and INTERSECT give some of the left rows, and INTERSECT rows that are right rows too.
    Without ALL no row is given twice, so all columns together are a key.
    """
    assert inner is not None
    match stage.kind:
        case "union":
            return KnownColumns(left.width, filled=left.filled & inner.filled)
        case "intersect":
            constant, filled = left.constant | inner.constant, left.filled | inner.filled
            known = KnownColumns(left.width, (), constant, filled).with_keys(*left.keys, *inner.keys)
        case "except":
            known = left
    return known if stage.all else known.with_keys(range(left.width))
