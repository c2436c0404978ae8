"""How the operators of a query keep rows until they leave (Golab and Oezsu, section 5.3).

    nt        every exit is sent through the plan as a negative tuple; state is hashed
    direct    exits are foretold with the rows; state stands in the order of arrival, and is scanned
    upa       exits are foretold; each state is kept as the update pattern of its input asks for

Answers and changes are the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Strategy = Literal["nt", "direct", "upa"]
Structure = Literal["partitioned", "negative", "indexed"]


@dataclass(frozen=True, slots=True)
class Policy:
    """structure: of state over an edge on which rows leave before their time, of ``upa`` alone: partitions
    that a negative tuple searches; all exits as negative tuples, as ``nt`` has them; or partitions with an
    index. partitions: how many a calendar has; None: as many as :mod:`engine.dataflow.buffers` says.
    """

    strategy: Strategy = "nt"
    structure: Structure = "partitioned"
    partitions: int | None = None

    @property
    def foretells(self) -> bool:
        """Whether exits are told with the rows."""
        return self.strategy != "nt"


TOLD = Policy()
"""What queries have that say nothing else."""
