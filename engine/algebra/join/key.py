"""What tells pairs apart: what tells both parts, or one, where it has one partner at most."""

from __future__ import annotations

from engine.algebra.join.stage import Join
from engine.changes.result_key import KnownColumns


def known_above(stage: Join, left: KnownColumns, inner: KnownColumns | None) -> KnownColumns:
    if stage.kind in ("semi", "anti"):
        return left
    assert inner is not None
    given_left, given_inner = stage.kind not in ("right", "full"), stage.kind not in ("left", "full")
    moved = inner.moved(left.width)
    known = KnownColumns(
        left.width + inner.width,
        (),
        # NULLs stand for the columns of a side that gives no partner.
        (left.constant if given_left else frozenset()) | (moved.constant if given_inner else frozenset()),
        (left.filled if given_left else frozenset()) | (moved.filled if given_inner else frozenset()),
    )
    keys = [one | other for one in left.keys for other in moved.keys]
    if stage.kind == "full":  # (NULL, b) without a partner may be (a, NULL) without one unless one cannot be
        filled = left.filled | moved.filled
        return known.with_keys(*(key for key in keys if key & filled))
    if stage.kind != "right" and (stage.latest is not None or inner.tells([key for _, key in stage.keys])):
        keys += left.keys
    if stage.kind != "left" and stage.latest is None and left.tells([key for key, _ in stage.keys]):
        keys += moved.keys
    return known.with_keys(*keys)
