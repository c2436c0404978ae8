"""Functions of BYTES, whose texts are hexadecimal digits."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import Any

from engine.language.evaluation.nested import ERROR, rowwise
from engine.language.evaluation.vector import Vector
from engine.model.types import BIGINT, BYTES, STRING, Type

FORMATS = ("base64", "hex", "utf-8")


def byte_length(arguments: Sequence[Vector], type_: Type, n: int) -> Vector:
    """LENGTH of BYTES."""
    return rowwise(arguments, BIGINT, lambda digits: len(digits) // 2)


def encoded(arguments: Sequence[Vector], type_: Type, n: int) -> Vector:
    """ENCODE: BYTES as text."""

    def one(digits: str, form: str) -> str:
        match form.lower():
            case "hex":
                return digits
            case "base64":
                return base64.b64encode(bytes.fromhex(digits)).decode()
        return bytes.fromhex(digits).decode()

    return rowwise(arguments, STRING, one)


def decoded(arguments: Sequence[Vector], type_: Type, n: int) -> Vector:
    """DECODE: the BYTES of a text."""

    def one(text: str, form: str) -> Any:
        match form.lower():
            case "hex":
                plain = text.lower()
                return plain if len(plain) % 2 == 0 and set(plain) <= set("0123456789abcdef") else ERROR
            case "base64":
                return base64.b64decode(text, validate=True).hex()
        return text.encode().hex()

    return rowwise(arguments, BYTES, one)
