"""How often Python's collector of cycles runs in the broker's processes.

Registrations and restores make many objects that stay and hardly any cycles, yet by default the collector
looks at the youngest after every 700: a third to half of the CPU of registering. It waits for more here. What
a query holds is freed without it; cycles are left by the parser, some kilobytes a text of a new shape.
"""

from __future__ import annotations

import gc

YOUNG_OBJECTS = 20_000
"""The youngest are looked at after so many: a pause of a millisecond, some megabytes of garbage at most."""
YOUNG_PASSES = 20
"""The next older ones after so many passes."""


def collect_seldom() -> None:
    """For the whole process."""
    gc.set_threshold(YOUNG_OBJECTS, YOUNG_PASSES, 10)
