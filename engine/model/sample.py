"""SAMPLE: which rows of a source a query may see, decided row by row from where the row comes from.

Each row of a source has a *sample key*, 0 <= key < 2^63, a hash of its topic, partition and offset
(:mod:`engine.kernels.sampling`), and SAMPLE(p) keeps it where key < p percent of 2^63. So a sample is the
same whenever and wherever it is drawn, and SAMPLE(2) lies within SAMPLE(10). All queries share the keys of a
source, unless SAMPLE names a seed: then the keys are hashed once more with it.

The key is a column behind those that a source stores, :data:`SAMPLE_KEY`: no row holds it, it is made of
where rows come from when a predicate asks for it.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

PERCENT_MIN = Decimal("0.000001")
"""One row in a hundred million."""

PERCENT_MAX = Decimal(100)
KEYS = 2**63
"""How many keys there are."""
SEED_MAX = KEYS - 1


@dataclass(frozen=True, slots=True)
class Sample:
    """What SAMPLE says. percent: of the rows, PERCENT_MIN <= percent <= 100. down_to: to how many percent the
    rate may fall, PERCENT_MIN <= down_to <= percent; None: it stays. seed: 0 <= seed < 2^63, draws other keys
    than those that all queries share; None: those.
    """

    percent: Decimal
    down_to: Decimal | None = None
    seed: int | None = None

    @property
    def share(self) -> float:
        """The share of the rows that it keeps, in (0, 1]."""
        return float(self.percent) / 100

    @property
    def is_whole(self) -> bool:
        """Whether every row is kept."""
        return self.percent == PERCENT_MAX

    @property
    def keys_below(self) -> int:
        """Rows whose key is below this one are kept."""
        return int(Fraction(self.percent) * KEYS / 100)


def topic_seed(topic: str) -> int:
    """The seed of a source's own sample, 0 <= seed < 2^64: SAMPLE of two topics keeps rows independently."""
    return int.from_bytes(hashlib.blake2b(topic.encode(), digest_size=8).digest(), "little")
