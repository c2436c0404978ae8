"""What a shard tells, from its own thread, to whoever passes changes of answers on."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Protocol

from engine.model.step import StepResult
from engine.views.view import View
from tureen.errors import TureenError


class Listener(Protocol):
    """Called by the shard's thread; must be quick, and raise nothing."""

    def committed(
        self, shard: int, view: View, results: Sequence[StepResult], touched: Collection[str]
    ) -> None:
        """Steps were journalled, and the view after them is shown.

        results: of these steps, in order. touched: queries that came, went, or were given other options.
        """

    def ended(self, shard: int, error: TureenError | None) -> None:
        """The shard makes no steps any more. error: why it failed; None where it was stopped, or has
        another owner.
        """
