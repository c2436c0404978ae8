"""What every module of the engine tells of itself, and what of it may be set while it runs.

The API, the metrics and a page that shows a running plan are drawn from these lists; none knows a module.
A settable attribute never changes an answer: what does is a step, and journalled.
"""

from __future__ import annotations

from dataclasses import dataclass

AttributeValue = int | float | str | bool | None


@dataclass(frozen=True, slots=True)
class Attribute:
    """One attribute as it stands. ``choices``: what it may be set to; ``accepts``: the same in words, where
    these are too many. Neither: it can only be read.
    """

    name: str
    value: AttributeValue
    about: str
    choices: tuple[str, ...] = ()
    accepts: str = ""
