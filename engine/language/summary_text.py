"""The statement that creates a summary, from its definition."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from engine.language.render import render_name
from engine.model.summary import SummaryDefinition, SummarySettings


def summary_text(definition: SummaryDefinition) -> str:
    """A CREATE SUMMARY text that means just this; settings that are the defaults are left out.

    >>> from engine.model.source import SourceName
    >>> summary_text(SummaryDefinition("hot", SourceName("orders"), "item", 10_000, 4, 3))
    'CREATE SUMMARY hot ON orders (item) WITH GRANULARITY 10000 MILLISECONDS AND COLLAPSE (4, 3)'
    """
    name, stream, attribute = map(render_name, (definition.name, definition.stream, definition.attribute))
    text = (
        f"CREATE SUMMARY {name} ON {stream} ({attribute}) WITH GRANULARITY "
        f"{definition.granularity_ms} MILLISECONDS AND COLLAPSE ({definition.rate}, {definition.depth})"
    )
    plain = SummarySettings()
    given = [
        _setting(one.name, getattr(definition.settings, one.name))
        for one in fields(SummarySettings)
        if getattr(definition.settings, one.name) != getattr(plain, one.name)
    ]
    return f"{text} SETTINGS ({', '.join(given)})" if given else text


def _setting(name: str, value: Any) -> str:
    if name == "zone_length_max_ms":
        return f"zone_length_max = '{value} milliseconds'"
    return f"{name} = '{value}'" if isinstance(value, str) else f"{name} = {value!r}"
