"""Moving lines between caches and memory by hand.

Writing past the caches: what is written once and not read soon should not be read first. An ordinary store
fetches its line from memory before it overwrites it; a pass that only writes spends half of its memory
traffic on that. These stores leave whole lines to the write-combining buffers instead (measured 1.5 times as
fast where match columns are many). Rows whose address is no multiple of a line are written the ordinary way.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from engine.kernels.compiled import kernel

LINE_BYTES = 64
LINE_WORDS = 8


@intrinsic
def _copy_line(typingctx: Any, target: Any, source: Any) -> Any:
    """Move one line between two addresses without fetching the target; target is a multiple of 64."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        line = ir.VectorType(ir.IntType(64), LINE_WORDS)
        loaded = builder.load(builder.inttoptr(arguments[1], line.as_pointer()))
        loaded.align = 8
        stored = builder.store(loaded, builder.inttoptr(arguments[0], line.as_pointer()))
        stored.align = LINE_BYTES
        stored.set_metadata("nontemporal", builder.module.add_metadata([ir.Constant(ir.IntType(32), 1)]))
        return context.get_dummy_value()

    return types.void(types.intp, types.intp), generate


@intrinsic
def prefetch(typingctx: Any, address: Any) -> Any:
    """Begin to fetch the line at an address, which need not be mapped.

    It gains where what is read next hangs on a branch that is hard to predict; a plain gather of scattered
    elements is as fast without.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        byte, number = ir.IntType(8).as_pointer(), ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [byte, number, number, number])
        function = builder.module.declare_intrinsic("llvm.prefetch", [byte], kind)
        to_read, keep, data = number(0), number(3), number(1)
        builder.call(function, [builder.inttoptr(arguments[0], byte), to_read, keep, data])
        return context.get_dummy_value()

    return types.void(types.intp), generate


@kernel
def stream(source: npt.NDArray[np.uint64], target: npt.NDArray[np.uint64], n: int) -> None:
    """target[:n] = source[:n]; both contiguous uint64, not overlapping."""
    address = target.ctypes.data
    head = min(n, ((-address) % LINE_BYTES) >> 3)
    for i in range(head):
        target[i] = source[i]
    lines = (n - head) // LINE_WORDS
    begin = source.ctypes.data + 8 * head
    address += 8 * head
    for line in range(lines):
        _copy_line(address + LINE_BYTES * line, begin + LINE_BYTES * line)  # type: ignore[call-arg]
    for i in range(head + LINE_WORDS * lines, n):
        target[i] = source[i]


def aligned_words(words: int) -> npt.NDArray[np.uint64]:
    """uint64[words + 8] of which a slice from :func:`first_aligned` on begins at a line."""
    return np.empty(words + LINE_WORDS, np.uint64)


def first_aligned(array: npt.NDArray[np.uint64]) -> int:
    """The first element that begins a line."""
    return int((-array.ctypes.data % LINE_BYTES) >> 3)
