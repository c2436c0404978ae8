"""Choices without chance: each is a hash of a seed, a subject and what is chosen, as a Spark expression.

A choice is the same wherever and however often it is made, and says nothing about any other. Letters in texts
are not equally frequent: they stand for digits of base 64.
"""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

_BASE64 = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
_LETTERS = "abcdefghijklmnopqrstuvwxyz"
_WORDS = (_LETTERS * 3)[:59] + "\0" * 5
"""What stands for each digit of base 64: letters, and a blank (or another mark) for 1 of 13."""
_EXTRA = ("".join(map(chr, range(ord("H"), ord("z") + 1))) * 2)[:64]
"""Letters and the marks between Z and a, of which JSON escapes one."""
_DIGITS, _DIGITS_SMALL = 76, 22
"""Digits of base 64 taken of a hash of 512 bits, before Spark may break the line, and of one of 128."""


class Draw:
    """Choices for one row, as expressions of the seed, the row's subject and what is chosen."""

    def __init__(self, seed: int, subject: Column) -> None:
        self._seed = F.lit(seed).cast("bigint")
        self._subject = subject

    def uniform(self, purpose: str) -> Column:
        """A double in [0, 1)."""
        hashed = F.xxhash64(self._seed, self._subject, F.lit(purpose))
        return F.shiftrightunsigned(hashed, 11).cast("double") * F.lit(2.0**-53)

    def happens(self, probability: float, purpose: str) -> Column:
        return self.uniform(f"whether {purpose}") < probability

    def below(self, limit: int | Column, purpose: str) -> Column:
        """A whole number from 0, below the limit."""
        return F.floor(self.uniform(purpose) * limit)

    def one_of(self, texts: tuple[str, ...], purpose: str) -> Column:
        listed = F.array(*(F.lit(text) for text in texts))
        return F.get(listed, self.below(len(texts), purpose).cast("int"))

    def price(self, purpose: str) -> Column:
        """Log-uniform from 100 to 100,000,000 cents."""
        return F.round(F.pow(F.lit(10.0), self.uniform(purpose) * 6) * 100).cast("bigint")

    def letters(self, length: int, purpose: str, mark: str) -> Column:
        """At least so many letters, a mark among them now and then."""
        return F.translate(self._digits(length, purpose), _BASE64, _WORDS.replace("\0", mark))

    def word(self, length_max: int, purpose: str) -> Column:
        """3 letters to ``length_max - 1``, some of them blanks; those at the ends are dropped."""
        length = self.below(length_max - 3, f"length of {purpose}") + 3
        return F.trim(F.substr(self.letters(length_max, purpose, " "), F.lit(1), length.cast("int")))

    def extra(self, size: int, used: Column, length_max: int) -> Column:
        """Text that brings a row from its used size to ``size``, give or take a fifth of what is missing."""
        missing = F.greatest(F.lit(size) - used, F.lit(0))
        fifth = F.round(missing * 0.2).cast("bigint")
        length = missing - fifth + self.below(fifth * 2, "length of extra")
        text = F.translate(self._digits(length_max, "extra"), _BASE64, _EXTRA)
        return F.substr(text, F.lit(1), length.cast("int"))

    def _digits(self, length: int, purpose: str) -> Column:
        """At least so many random digits of base 64."""
        if length <= _DIGITS_SMALL:
            return _base64(F.md5(self._named(F.lit(purpose))), _DIGITS_SMALL)

        def block(number: Column) -> Column:
            return _base64(F.sha2(self._named(F.lit(purpose), number.cast("string")), 512), _DIGITS)

        blocks = F.sequence(F.lit(1), F.lit(-(-length // _DIGITS)))
        return F.array_join(F.transform(blocks, block), "")

    def _named(self, *purpose: Column) -> Column:
        return F.concat_ws("/", self._seed, self._subject, *purpose)


def _base64(bits: Column, digits: int) -> Column:
    """The first digits of bits in base 16."""
    return F.substring(F.base64(F.unhex(bits)), 1, digits)
