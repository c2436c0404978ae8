"""The engine driven step by step, its invariants checked after every one, the reference beside it."""

from __future__ import annotations

from hypothesis import settings

from tests.differential.stateful import EngineMachine

TestEngineMachine = EngineMachine.TestCase
TestEngineMachine.settings = settings(
    max_examples=max(10, settings.default.max_examples // 4), stateful_step_count=15
)
