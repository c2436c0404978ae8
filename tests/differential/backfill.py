"""Data and helpers that ``backfill_test.py`` shares with other tests."""

from __future__ import annotations

from dataclasses import replace

from engine.model.step import CreateSource, Records, Step


def long_retained(step: Step) -> Step:
    body = step.body
    if isinstance(body, CreateSource):
        return replace(step, body=replace(body, stream=replace(body.stream, retain_ms=10**9)))
    return step


def whole(step: Step) -> Step:
    body = step.body
    return replace(step, body=replace(body, complete_from_ms=None)) if isinstance(body, Records) else step
