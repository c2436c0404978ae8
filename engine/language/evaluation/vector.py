"""Intermediate values: a column that may be one value for all rows, with NULLs and errors apart.

Arrays have n rows, or one that stands for all (a constant); numpy's broadcasting does the rest. A row is
never both
NULL and an error: NULL wins. What stands at either is unspecified, but in range (string codes index the
dictionary).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from engine.model.batch import BoolArray, Column, Int64Array
from engine.model.codes import used_codes
from engine.model.types import Kind, Type

Array = npt.NDArray[Any]


@dataclass(frozen=True, slots=True)
class Vector:
    """values: [n] or [1], dtype by type. null, error: as long as values or of length 1, or None where there
    is none.

    dictionary: for STRING, what the codes index; no two values alike.
    """

    type: Type
    values: Array
    null: BoolArray | None = None
    error: BoolArray | None = None
    dictionary: pa.StringArray | None = None

    @property
    def unusable(self) -> BoolArray | None:
        """NULL or error."""
        return either(self.null, self.error)


def either(left: BoolArray | None, right: BoolArray | None) -> BoolArray | None:
    """The union of two masks, None standing for nowhere."""
    if left is None:
        return right
    return left if right is None else left | right


def but_not(mask: BoolArray | None, removed: BoolArray | None) -> BoolArray | None:
    """The mask without the rows of another; None where nothing is left."""
    if mask is None or removed is None:
        return mask
    left = mask & ~removed
    return left if left.any() else None


def strict(
    arguments: Sequence[Vector],
    type_: Type,
    values: Array,
    error: BoolArray | None = None,
    dictionary: pa.StringArray | None = None,
) -> Vector:
    """A result that is NULL where an argument is NULL, else an error where one is or ``error`` says so."""
    null: BoolArray | None = None
    for argument in arguments:
        null = either(null, argument.null)
        error = either(error, argument.error)
    if error is not None:
        error = but_not(error, null)
        if error is not None and not error.any():
            error = None
    masks = max((len(mask) for mask in (null, error) if mask is not None), default=1)
    if masks > len(values) == 1:
        values = np.repeat(values, masks)
    return Vector(type_, values, null, error, dictionary)


def constant(value: Any, type_: Type) -> Vector:
    """A literal's value, as :mod:`engine.model.types` holds it, for every row."""
    if value is None:
        dictionary = pa.array([""], pa.string()) if type_.kind is Kind.STRING else None
        return Vector(type_, np.zeros(1, type_.dtype), np.ones(1, np.bool_), None, dictionary)
    if type_.kind is Kind.STRING:
        return Vector(type_, np.zeros(1, np.int32), None, None, pa.array([value], pa.string()))
    if type_.kind is Kind.DECIMAL:
        value = int(value.scaleb(type_.scale))
    return Vector(type_, np.array([value], type_.dtype))


def from_column(column: Column) -> Vector:
    """A column of a batch, without a copy."""
    null = None if column.valid is None else ~column.valid
    return Vector(column.type, column.values, null, None, column.dictionary)


def spread(mask: Array, n: int) -> Array:
    """An array of n rows from one of n or one."""
    return mask if len(mask) == n else np.repeat(mask, n)


def height(vectors: Sequence[Vector]) -> int:
    """The rows of a result of these: 1 where all are constants."""
    sizes = [len(vector.values) for vector in vectors]
    return 0 if 0 in sizes else max(sizes)


def to_column(vector: Vector, n: int) -> tuple[Column, BoolArray | None]:
    """A column of n rows, not valid where NULL or an error, and the errors."""
    unusable = vector.unusable
    valid = None if unusable is None else spread(~unusable, n)
    error = None if vector.error is None else spread(vector.error, n)
    if valid is not None and valid.all():
        valid = None
    if error is not None and not error.any():
        error = None
    return Column(vector.type, spread(vector.values, n), valid, vector.dictionary), error


# --- strings


def texts(vector: Vector) -> pa.StringArray:
    """The strings row by row, NULL where NULL or error."""
    assert vector.dictionary is not None
    if not len(vector.dictionary):
        return pa.nulls(len(vector.values), pa.string())
    size = len(vector.values)
    unusable = vector.unusable
    mask = None if unusable is None else spread(unusable, size)
    return vector.dictionary.take(pa.array(vector.values, pa.int32(), mask=mask))


def from_texts(
    arguments: Sequence[Vector], type_: Type, strings: pa.Array, error: BoolArray | None = None
) -> Vector:
    """A strict STRING result from strings row by row; what stands at NULL rows is ignored."""
    if isinstance(strings, pa.ChunkedArray):
        strings = strings.combine_chunks()
    encoded = strings.fill_null("").dictionary_encode()
    codes = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int32, copy=False)
    return strict(arguments, type_, codes, error, encoded.dictionary)


def compact(vector: Vector) -> Vector:
    """The vector with a dictionary in proportion to its rows, which bounds the work per distinct value."""
    assert vector.dictionary is not None
    if len(vector.dictionary) <= 2 * len(vector.values) + 16:
        return vector
    codes, used = used_codes(vector.values)
    dictionary = vector.dictionary.take(pa.array(used))
    return Vector(vector.type, codes, vector.null, vector.error, dictionary)


def over_dictionary(
    vector: Vector, type_: Type, function: Callable[[pa.StringArray], tuple[Any, Array | None]]
) -> Vector:
    """Apply a function of one string to each distinct value.

    function: strings[d] -> (an Arrow string array for STRING, else values[d]; errors bool[d] or None).
    """
    vector = compact(vector)
    dictionary = vector.dictionary
    assert dictionary is not None
    if not len(dictionary):
        empty = pa.array([""], pa.string()) if type_.kind is Kind.STRING else None
        return strict([vector], type_, np.zeros(len(vector.values), type_.dtype), None, empty)
    result, wrong = function(dictionary)
    error = None if wrong is None else wrong[vector.values]
    if type_.kind is not Kind.STRING:
        return strict([vector], type_, np.asarray(result)[vector.values], error)
    encoded = pc.fill_null(result, "").dictionary_encode()
    places = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int32, copy=False)
    return strict([vector], type_, places[vector.values], error, encoded.dictionary)


# --- choosing between vectors


def choose(type_: Type, picks: Array, options: Sequence[Vector], n: int) -> Vector:
    """Row by row the option that ``picks`` (int[n] or int[1]) names, NULLs and errors with it."""
    picks = spread(picks, n)
    dictionary, options = unite(type_, options)
    values = np.zeros(n, type_.dtype)
    null = np.zeros(n, np.bool_)
    error = np.zeros(n, np.bool_)
    for place, option in enumerate(options):
        rows = picks == place
        if not rows.any():
            continue
        np.copyto(values, option.values, where=rows)
        if option.null is not None:
            null |= rows & option.null
        if option.error is not None:
            error |= rows & option.error
    return Vector(type_, values, null if null.any() else None, error if error.any() else None, dictionary)


def unite(type_: Type, vectors: Sequence[Vector]) -> tuple[pa.StringArray | None, list[Vector]]:
    """STRING vectors over one dictionary; others as they are."""
    if type_.kind is not Kind.STRING:
        return None, list(vectors)
    vectors = [compact(vector) for vector in vectors]
    united = pc.unique(pa.chunked_array([v.dictionary for v in vectors], pa.string()))
    result = []
    for vector in vectors:
        assert vector.dictionary is not None
        values = np.zeros(len(vector.values), np.int32)
        if len(vector.dictionary):
            places = pc.index_in(vector.dictionary, united).to_numpy(zero_copy_only=False).astype(np.int32)
            values = places[vector.values]
        result.append(Vector(vector.type, values, vector.null, vector.error, united))
    return united, result


# --- whole numbers with overflow


SAFE = 9.22e18  # below the bound of int64 by more than a double's rounding error


def exact_rows(
    estimate: npt.NDArray[np.float64],
    values: Int64Array,
    exact: Callable[[int], int | None],
    limit: int,
) -> tuple[Int64Array, BoolArray | None]:
    """Repair int64 results that may have wrapped.

    estimate: the results as doubles. exact: row -> the true result, None for none. Results beyond +-limit
    are errors.
    """
    doubtful = ~(np.abs(estimate) < min(SAFE, limit * (1 - 1e-12)))
    if not doubtful.any():
        return values, None
    values = np.array(np.broadcast_to(values, estimate.shape))
    error = np.zeros(estimate.shape, np.bool_)
    for row in np.flatnonzero(doubtful):
        result = exact(int(row))
        if result is None or not -limit - 1 <= result <= limit:
            error[row], values[row] = True, 0
        else:
            values[row] = result
    return values, error if error.any() else None
