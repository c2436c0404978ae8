"""Digests of strings in UTF-8, as hexadecimal digits."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from engine.language.evaluation.text import per_value
from engine.language.evaluation.vector import Vector
from engine.model.types import STRING, Type


def md5(arguments: Sequence[Vector], type_: Type, n: int) -> Vector:
    """MD5."""
    return per_value(arguments, STRING, lambda s: hashlib.md5(s.encode(), usedforsecurity=False).hexdigest())


def sha1(arguments: Sequence[Vector], type_: Type, n: int) -> Vector:
    """SHA1."""
    return per_value(arguments, STRING, lambda s: hashlib.sha1(s.encode(), usedforsecurity=False).hexdigest())


def sha256(arguments: Sequence[Vector], type_: Type, n: int) -> Vector:
    """SHA256."""
    return per_value(arguments, STRING, lambda s: hashlib.sha256(s.encode()).hexdigest())


def sha224(arguments: Sequence[Vector], type_: Type, n: int) -> Vector:
    """SHA224."""
    return per_value(arguments, STRING, lambda s: hashlib.sha224(s.encode()).hexdigest())


def sha384(arguments: Sequence[Vector], type_: Type, n: int) -> Vector:
    """SHA384."""
    return per_value(arguments, STRING, lambda s: hashlib.sha384(s.encode()).hexdigest())


def sha512(arguments: Sequence[Vector], type_: Type, n: int) -> Vector:
    """SHA512."""
    return per_value(arguments, STRING, lambda s: hashlib.sha512(s.encode()).hexdigest())
