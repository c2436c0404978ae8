"""What a shard's entity tells of work for queries with a preference, and the limit of it that can be set."""

from __future__ import annotations

from broker.shard.grants import Grants
from engine.model.attributes import Attribute, AttributeValue, NumberRange

LIMIT = "preference_work_per_s_max"
"""The attribute, and the setting that it begins with."""
UNITS_PER_S_MAX = 1_000_000_000_000


def work_attributes(grants: Grants) -> tuple[Attribute, ...]:
    """The attributes of a shard's work for queries with a preference; from any thread."""
    return (
        Attribute(
            LIMIT,
            grants.limit.per_s_max,
            "units of work a second for queries with a preference; NULL: what is free, 0: none",
            unit="units/s",
            bounds=NumberRange(0, UNITS_PER_S_MAX),
            kind="integer",
            clearable=True,
        ),
        Attribute("preference_left", grants.left, "units of work for them that are left", unit="units"),
        Attribute("preference_granted", grants.granted, "units that steps were granted", unit="units"),
        Attribute("preference_spent", grants.spent, "units of these that were spent", unit="units"),
        Attribute("preference_unit_ns", round(grants.cost.ns), "what a unit took lately"),
        Attribute("preference_grant_ns", round(grants.cost.fixed_ns), "what a grant took besides its units"),
    )


def limit_work(grants: Grants, per_s_max: AttributeValue, now_ns: int) -> None:
    """Set the limit to a value that the attribute accepts; in the shard's thread."""
    grants.limit.set(None if per_s_max is None else int(per_s_max), now_ns)
