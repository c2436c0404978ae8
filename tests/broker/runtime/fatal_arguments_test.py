"""Arguments that are remembered, by a clock of the test's own."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from broker.runtime.fatal_arguments import ARGUMENTS_MAX, REMEMBERED_S, FatalArguments
from engine.model.batch import Column
from engine.model.types import BIGINT, STRING


def test_they_are_remembered_for_a_while_and_the_last_ones_alone() -> None:
    now_s = [0.0]
    fatal = FatalArguments(lambda: now_s[0])
    numbers = Column(BIGINT, np.arange(1_000))
    texts = Column.from_arrow(STRING, pa.array(["a", "b"] * 500))
    assert fatal.find([numbers, texts]) == {}
    fatal.add([numbers, texts], 3, "late")
    fatal.add([numbers, texts], 8, "crashed")
    assert fatal.find([numbers, texts]) == {3: "late", 8: "crashed"}
    assert fatal.find([numbers, texts.take(np.arange(999, -1, -1))]) == {}
    now_s[0] = REMEMBERED_S / 2
    for row in range(100, 100 + ARGUMENTS_MAX - 1):
        fatal.add([numbers, texts], row, "late")
    assert [*fatal.find([numbers, texts])][:2] == [8, 100]
    now_s[0] = REMEMBERED_S + 1
    assert [*fatal.find([numbers, texts])][:1] == [100]
    now_s[0] = REMEMBERED_S * 2
    assert fatal.find([numbers, texts]) == {}
