"""The engine driven step by step with every query followed, and half of them saying EMIT CHANGES: what it
tells is what the reference tells, through saves and restarts at any time.
"""

from __future__ import annotations

from hypothesis import settings

from engine.model.step import Body, Position, Step
from tests.differential.agreement import told
from tests.differential.stateful import EngineMachine
from tests.differential.telling import Followers, assert_same_telling, follow_all, of_reference

OPERATORS = ("{}", "{} EMIT CHANGES", "ISTREAM({})", "{} EMIT CHANGES WITH (format = 'diff')", "RSTREAM({})")


class FollowingMachine(EngineMachine):
    """As the machine that it is, and all queries are followed."""

    def __init__(self) -> None:
        super().__init__()
        self.followers = Followers(self.engine)

    def apply(self, body: Body) -> None:
        if self.followers.subject is not self.engine:
            self.followers = self.followers.again(self.engine)
        self.sequence += 1
        step = Step(Position(1, self.sequence), self.clock, body)
        result, mine = self.followers.apply(step)
        assert told(result) == told(self.reference.apply(step))
        assert_same_telling(mine, of_reference(self.reference))
        follow_all(self.reference)

    def register(self, sql: str, options: dict[str, str]) -> None:
        """One after the other with another operator."""
        super().register(OPERATORS[self.born % len(OPERATORS)].format(sql), options)


TestFollowingMachine = FollowingMachine.TestCase
TestFollowingMachine.settings = settings(
    max_examples=max(5, settings.default.max_examples // 8), stateful_step_count=12
)
