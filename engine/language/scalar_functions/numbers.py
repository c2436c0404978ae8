"""Functions of numbers."""

from __future__ import annotations

import math

from engine.language import signatures
from engine.language.evaluation import bits, numeric, trigonometry
from engine.language.scalar_functions.function import ScalarFunction, unreachable
from engine.model.expressions import Arithmetic, Expression, Literal
from engine.model.types import DOUBLE, Type


def _remainder(arguments: tuple[Expression, ...], type_: Type) -> Expression:
    return Arithmetic("%", arguments[0], arguments[1], type_)


def _quotient(arguments: tuple[Expression, ...], type_: Type) -> Expression:
    return Arithmetic("/", arguments[0], arguments[1], type_)


def _pi(arguments: tuple[Expression, ...], type_: Type) -> Expression:
    return Literal(math.pi, DOUBLE)


NUMBERS = (
    ScalarFunction(
        "ABS",
        1,
        1,
        signatures.same_number,
        numeric.absolute,
        "ABS(x)",
        "x without its sign; an error for the least INTEGER or BIGINT",
    ),
    ScalarFunction("SIGN", 1, 1, signatures.sign, numeric.sign, "SIGN(x)", "-1, 0 or 1; NaN for NaN"),
    ScalarFunction(
        "ROUND",
        1,
        2,
        signatures.rounded,
        numeric.rounded,
        "ROUND(x [, places])",
        "x rounded, halves away from zero; places may be negative",
    ),
    ScalarFunction(
        "FLOOR",
        1,
        1,
        signatures.whole,
        numeric.floor,
        "FLOOR(x)",
        "the greatest whole number that is not above x",
    ),
    ScalarFunction(
        "CEIL", 1, 1, signatures.whole, numeric.ceil, "CEIL(x)", "the least whole number that is not below x"
    ),
    ScalarFunction(
        "MOD",
        2,
        2,
        signatures.modulo,
        unreachable,
        "MOD(x, y)",
        "x % y: the remainder, with the sign of x; an error where y is 0",
        _remainder,
    ),
    ScalarFunction(
        "SQRT",
        1,
        1,
        signatures.doubles,
        numeric.sqrt,
        "SQRT(x)",
        "the square root, a DOUBLE; an error below 0",
    ),
    ScalarFunction(
        "LN",
        1,
        1,
        signatures.doubles,
        numeric.ln,
        "LN(x)",
        "the natural logarithm, a DOUBLE; an error at 0 and below",
    ),
    ScalarFunction(
        "EXP",
        1,
        1,
        signatures.doubles,
        numeric.exp,
        "EXP(x)",
        "e to the power of x, a DOUBLE; infinity where it is too large",
    ),
    ScalarFunction(
        "POWER",
        2,
        2,
        signatures.doubles,
        numeric.power,
        "POWER(x, y)",
        "x to the power of y, a DOUBLE; "
        "an error for 0 to a negative power and for a fractional power of a negative number",
    ),
    ScalarFunction(
        "TRUNC",
        1,
        2,
        signatures.rounded,
        numeric.truncated,
        "TRUNC(x [, places])",
        "x without the digits behind so many places, toward zero; places may be negative",
    ),
    ScalarFunction(
        "DIV",
        2,
        2,
        signatures.whole_numbers,
        unreachable,
        "DIV(x, y)",
        "the whole part of x / y for whole numbers; an error where y is 0",
        _quotient,
    ),
    ScalarFunction(
        "GCD",
        2,
        2,
        signatures.whole_numbers,
        numeric.greatest_divisor,
        "GCD(x, y)",
        "the greatest common divisor of two whole numbers; an error where it is no BIGINT",
    ),
    ScalarFunction(
        "LCM",
        2,
        2,
        signatures.whole_numbers,
        numeric.least_multiple,
        "LCM(x, y)",
        "the least common multiple of two whole numbers; an error where it is no BIGINT",
    ),
    ScalarFunction(
        "FACTORIAL",
        1,
        1,
        signatures.whole_numbers,
        numeric.factorial,
        "FACTORIAL(n)",
        "1 * 2 * ... * n, a BIGINT; an error below 0 and above 20",
    ),
    ScalarFunction("CBRT", 1, 1, signatures.doubles, numeric.cube_root, "CBRT(x)", "the cube root, a DOUBLE"),
    ScalarFunction(
        "LOG",
        1,
        2,
        signatures.doubles,
        numeric.logarithm,
        "LOG([base,] x)",
        "the logarithm to a base, 10 without one; an error at 0 and below, and for base 1",
    ),
    ScalarFunction(
        "LOG10",
        1,
        1,
        signatures.doubles,
        numeric.logarithm,
        "LOG10(x)",
        "the logarithm to base 10; an error at 0 and below",
    ),
    ScalarFunction(
        "LOG2",
        1,
        1,
        signatures.doubles,
        numeric.binary_logarithm,
        "LOG2(x)",
        "the logarithm to base 2; an error at 0 and below",
    ),
    ScalarFunction(
        "GAMMA",
        1,
        1,
        signatures.doubles,
        numeric.gamma,
        "GAMMA(x)",
        "the gamma function; an error at 0, at negative whole numbers, and where it is too large",
    ),
    ScalarFunction(
        "LGAMMA",
        1,
        1,
        signatures.doubles,
        numeric.log_gamma,
        "LGAMMA(x)",
        "the natural logarithm of GAMMA(x), without its sign; an error at 0 and at negative whole numbers",
    ),
    ScalarFunction("PI", 0, 0, signatures.doubles, unreachable, "PI()", "3.141592653589793", _pi),
    *(
        ScalarFunction(name, 1, 1, signatures.doubles, trigonometry.one(name), f"{name}(x)", doc)
        for name, doc in trigonometry.DOCUMENTED.items()
    ),
    ScalarFunction(
        "ATAN2",
        2,
        2,
        signatures.doubles,
        trigonometry.atan2,
        "ATAN2(y, x)",
        "the angle of the point (x, y), in radians",
    ),
    ScalarFunction(
        "ATAN2D", 2, 2, signatures.doubles, trigonometry.atan2d, "ATAN2D(y, x)", "the same in degrees"
    ),
    ScalarFunction(
        "&", 2, 2, signatures.whole_numbers, bits.both, "x & y", "the bits that both whole numbers have"
    ),
    ScalarFunction(
        "|", 2, 2, signatures.whole_numbers, bits.any_of, "x | y", "the bits that one of them has"
    ),
    ScalarFunction(
        "#",
        2,
        2,
        signatures.whole_numbers,
        bits.one_of,
        "x # y",
        "the bits that just one of them has",
    ),
    ScalarFunction("~", 1, 1, signatures.whole_numbers, bits.inverted, "~x", "all bits turned: -x - 1"),
    ScalarFunction(
        "<<",
        2,
        2,
        signatures.whole_numbers,
        bits.left,
        "x << n",
        "x * 2^n; an error where that is too large, and for a negative n",
    ),
    ScalarFunction(
        ">>",
        2,
        2,
        signatures.whole_numbers,
        bits.right,
        "x >> n",
        "x / 2^n, toward the smaller; an error for a negative n",
    ),
)
