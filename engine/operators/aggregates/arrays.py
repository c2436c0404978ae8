"""ARRAY_AGG and STRING_AGG: the values of a group as one, in the order of the rows. O(rows)."""

from __future__ import annotations

import itertools

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from engine.algebra.aggregate.stage import AggregateCall
from engine.language.aggregates import ARRAY_ELEMENTS_MAX, STRING_BYTES_MAX
from engine.language.evaluate import constant_value
from engine.model.batch import Column, Int64Array
from engine.model.json_texts import json_values
from engine.model.nested.arrow import from_arrow
from engine.model.types import JSON, Kind, Logical, Type
from engine.operators.aggregates.members import Members


def collect(members: Members, call: AggregateCall) -> tuple[Column, int]:
    """NULL of no rows; an error where they are too many."""
    order, starts = members.arranged()
    counts = np.diff(starts)
    too_long = counts > ARRAY_ELEMENTS_MAX
    column = members.values if order is None else members.values.take(order)
    if too_long.any():
        column = column.take(np.flatnonzero(~np.repeat(too_long, counts)))
        starts = np.concatenate([[0], np.cumsum(np.where(too_long, 0, counts))])
    valid = (counts > 0) & ~too_long
    lists = list_texts(column.type, column.to_arrow(), starts).dictionary_encode()
    places = lists.indices.to_numpy(zero_copy_only=False).astype(np.int32, copy=False)
    return Column(call.type, places, None if valid.all() else valid, lists.dictionary), int(too_long.sum())


def list_texts(type_: Type, elements: pa.Array, starts: Int64Array) -> pa.StringArray:
    """string[n]: canonical texts of ARRAYs of a type, each with the elements from one start to the next."""
    if type_.kind is Kind.DOUBLE:
        elements = pc.add(elements, 0.0)  # of the two zeros one
    elif type_.kind is Kind.DECIMAL:  # Arrow writes small ones with an exponent
        texts = [None if one is None else f"{one:f}" for one in elements.to_pylist()]
        elements = pa.array(texts, pa.string())
    elif type_.logical in (Logical.MAP, Logical.STRUCT):
        elements = pa.ExtensionArray.from_storage(JSON.arrow, from_arrow(type_, elements))
    parts = pa.ListArray.from_arrays(pa.array(starts, pa.int32()), json_values(elements))
    return pc.binary_join_element_wise("[", pc.binary_join(parts, ","), "]", "")


def joined(members: Members, call: AggregateCall) -> tuple[Column, int]:
    """STRING_AGG. NULL of no rows; an error where the string is too long."""
    separator = ","
    if len(call.arguments) > 1:
        literal = constant_value(call.arguments[1])
        assert literal is not None
        separator = str(literal.value)
    order, starts = members.arranged()
    texts = (members.values if order is None else members.values.take(order)).to_arrow().to_pylist()
    strings: list[str | None] = []
    wrong = 0
    for start, stop in itertools.pairwise(starts.tolist()):
        some = texts[start:stop]
        bytes_ = sum(len(text.encode()) for text in some) + len(separator.encode()) * (len(some) - 1)
        strings.append(separator.join(some) if some and bytes_ <= STRING_BYTES_MAX else None)
        wrong += bool(some) and bytes_ > STRING_BYTES_MAX
    return Column.from_arrow(call.type, pa.array(strings, pa.string())), wrong
