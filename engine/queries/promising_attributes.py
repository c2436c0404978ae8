"""What a group of queries with a preference tells of itself as an entity."""

from __future__ import annotations

from engine.model.attributes import Attribute
from engine.promising.group import GroupCounts
from engine.queries.promising import Numbered

_ABOUT = {
    "entries": ("entries that were put into its promising set", "entries"),
    "done": ("of these, those whose rows were all visited", "entries"),
    "entries_left": ("those that have rows to be visited", "entries"),
    "cut": ("those that were dropped because the set was full", "entries"),
    "lapsed": ("those whose rows left the windows before they were visited", "entries"),
    "pruned": ("those that the index of a summary ruled out: they are visited last", "entries"),
    "unranked": ("those whose priority is NULL, NaN or an error: they are visited after others", "entries"),
    "visited": ("stored rows that were visited", "rows"),
    "short": ("stored rows that are still to be visited", "rows"),
    "hits": ("pairs, or rows, that were found", "rows"),
    "estimate_left": ("how many more are estimated to be found", "rows"),
    "spent": ("units of grants that it used", "units"),
}


def promising_attributes(numbered: Numbered) -> tuple[Attribute, ...]:
    """Returns the attributes of one promising group. O(1)."""
    key, group = numbered.key, numbered.group
    counts = GroupCounts() if group is None else group.counts
    weight = sum(member.weight for member in numbered.members.values())
    return (
        Attribute("kind", key.kind, "what it finds: rows of a selection, or pairs of a join"),
        Attribute("order", key.order, "what comes first"),
        Attribute("fade", key.fade, "by which priorities fade from a granularity to the next older one"),
        Attribute("priority", key.form, "what priorities are made from"),
        Attribute("members", len(numbered.members), "queries that share it"),
        Attribute("weight", weight, "the sum of their weights: its part of grants is in proportion"),
        Attribute("waits", group is None, "whether a summary is absent, so that nothing is looked for"),
        *(Attribute(name, getattr(counts, name), about, unit=unit) for name, (about, unit) in _ABOUT.items()),
    )
