"""Rows of an answer as JSON objects, a column at a time.

The text of every value is what an answer over HTTP says: DOUBLE a number, or "NaN", "Infinity", "-Infinity"
as text; DECIMAL text with all its digits; DATE "2013-01-31"; TIMESTAMP "2013-01-31T09:15:00.000Z"; ARRAY an
array of such; NULL null. So equal values have equal bytes.

Cost: some 0.05 us a value and 0.1 us a row, without holding the interpreter for most of it; a text that needs
escaping about ten times that, once for each different one.
"""

from __future__ import annotations

from typing import cast

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc

SLICE_ROWS = 32_768
"""At once: its text has to stay below 2 GiB, which Arrow's offsets reach."""

_ESCAPED = r'["\\\x00-\x1f]'


def json_objects(table: pa.Table, begin: str | pa.StringArray = "{", end: str = "}") -> pa.LargeBinaryArray:
    """large_binary[n]: one JSON object a row, its keys in the order of the columns.

    begin, end: what every object begins and ends with, for rows that stand inside another object; or that
    have members besides the columns: `{"weight":1,` begins them. begin may be one text a row.
    """
    n = table.num_rows
    if not table.num_columns:
        begins = pa.array([begin] * n, pa.string()) if isinstance(begin, str) else begin
        return pc.binary_join_element_wise(begins, end, "").cast(pa.binary()).cast(pa.large_binary())
    found: list[pa.Array] = []
    heads = [orjson.dumps(name).decode() + ":" for name in table.column_names]
    for first in range(0, n, SLICE_ROWS):
        part = table.slice(first, SLICE_ROWS)
        pieces: list[str | pa.Array] = []
        written = ""
        if isinstance(begin, str):
            written = begin
        else:
            pieces.append(begin.slice(first, SLICE_ROWS))
        for head, column in zip(heads, part.columns, strict=True):
            text, quote = _text(_array(column))
            pieces += [written + head + quote, text]
            written = quote + ","
        pieces.append(written.removesuffix(",") + end)
        found.append(pc.binary_join_element_wise(*pieces, "").cast(pa.binary()).cast(pa.large_binary()))
    if not found:
        return pa.array([], pa.large_binary())
    return found[0] if len(found) == 1 else pa.concat_arrays(found)


def json_values(values: pa.Array | pa.ChunkedArray) -> pa.Array:
    """string[n]: each value as JSON; NULL is `null`."""
    text, quote = _text(_array(values))
    return pc.binary_join_element_wise(quote, text, quote, "") if quote else text


def iso(values: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    """Timestamps in ms as text with three digits and a Z; NULL stays NULL."""
    written = pc.replace_substring(pc.cast(values, pa.string()), " ", "T")
    return pc.binary_join_element_wise(written, "Z", "")


def _array(values: pa.Array | pa.ChunkedArray) -> pa.Array:
    return values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values


def _text(values: pa.Array) -> tuple[pa.Array, str]:
    """The values' text without NULLs, and the quotes that belong around each and are not written yet."""
    type_ = values.type
    if pa.types.is_floating(type_):
        text = _doubles(values)
    elif pa.types.is_list(type_):
        text = _lists(values)
    elif pa.types.is_boolean(type_) or pa.types.is_integer(type_) or pa.types.is_null(type_):
        text = pc.cast(values, pa.string())
    else:
        text = _quotable(values)
        if not text.null_count:
            return text, '"'
        text = pc.binary_join_element_wise('"', text, '"', "")
    return pc.fill_null(text, "null") if text.null_count else text, ""


def _doubles(values: pa.Array) -> pa.Array:
    if not len(values):
        return pa.array([], pa.string())
    plain = values.to_numpy(zero_copy_only=False)  # NULL as NaN
    text = orjson.dumps(np.ascontiguousarray(plain), option=orjson.OPT_SERIALIZE_NUMPY)[1:-1]
    found = pc.split_pattern(pa.array([text], pa.string()), ",").flatten()
    finite = np.isfinite(plain)
    if finite.all():
        return found
    for told, are in (('"NaN"', np.isnan(plain)), ('"Infinity"', plain > 0), ('"-Infinity"', plain < 0)):
        found = pc.if_else(pa.array(~finite & are), told, found)
    return pc.if_else(values.is_valid(), found, None) if values.null_count else found


def _quotable(values: pa.Array) -> pa.Array:
    type_ = values.type
    if pa.types.is_timestamp(type_):
        return iso(values)
    if pa.types.is_dictionary(type_):
        return pc.take(_quotable(values.dictionary), values.indices)
    text = values.cast(pa.string())
    if not pa.types.is_string(type_) or not pc.any(pc.match_substring_regex(text, _ESCAPED)).as_py():
        return text
    different = text.dictionary_encode()
    escaped = [orjson.dumps(value)[1:-1] for value in different.dictionary.to_pylist()]
    return pc.take(pa.array(escaped, pa.string()), different.indices)


def _lists(values: pa.ListArray) -> pa.Array:
    lengths = pc.fill_null(pc.list_value_length(values), 0).to_numpy()
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    elements = pa.ListArray.from_arrays(offsets, json_values(values.flatten()))
    inside = pc.binary_join(elements, ",")
    text = pc.binary_join_element_wise("[", inside, "]", "")
    return cast("pa.Array", pc.if_else(values.is_valid(), text, None))
