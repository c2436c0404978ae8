"""Functions of strings."""

from __future__ import annotations

from engine.language import signatures
from engine.language.evaluation import digests, padding, regexes, splits, text
from engine.language.scalar_functions.function import ARGUMENTS_MAX, Build, ScalarFunction, unreachable
from engine.model.expressions import Expression, Function
from engine.model.types import BIGINT, BOOLEAN, BYTES, STRING, Type


def _turned_position(arguments: tuple[Expression, ...], type_: Type) -> Expression:
    return Function("POSITION", arguments[::-1], type_)


def _length_of(name: str) -> Build:
    """A call of this name, but for BYTES."""

    def build(arguments: tuple[Expression, ...], type_: Type) -> Expression:
        return Function("BYTE_LENGTH" if arguments[0].type == BYTES else name, arguments, type_)

    return build


STRINGS = (
    ScalarFunction("LOWER", 1, 1, signatures.strings, text.lower, "LOWER(s)", "s in lower case"),
    ScalarFunction("UPPER", 1, 1, signatures.strings, text.upper, "UPPER(s)", "s in upper case"),
    ScalarFunction(
        "LENGTH",
        1,
        1,
        signatures.length,
        text.length,
        "LENGTH(s)",
        "the number of characters; of BYTES that of bytes",
        _length_of("LENGTH"),
    ),
    ScalarFunction(
        "TRIM",
        1,
        2,
        signatures.strings,
        text.trim,
        "TRIM(s [, characters])",
        "s without blanks (or these characters) at both ends; also TRIM(BOTH 'x' FROM s)",
    ),
    ScalarFunction(
        "LTRIM",
        1,
        2,
        signatures.strings,
        text.ltrim,
        "LTRIM(s [, characters])",
        "the same at the beginning; also TRIM(LEADING 'x' FROM s)",
    ),
    ScalarFunction(
        "RTRIM",
        1,
        2,
        signatures.strings,
        text.rtrim,
        "RTRIM(s [, characters])",
        "the same at the end; also TRIM(TRAILING 'x' FROM s)",
    ),
    ScalarFunction(
        "SUBSTRING",
        2,
        3,
        signatures.substring,
        text.substring,
        "SUBSTRING(s, start [, length])",
        "the part from character start (the first is 1); "
        "also SUBSTRING(s FROM 2 FOR 3); an error for a negative length",
    ),
    ScalarFunction(
        "REPLACE",
        3,
        3,
        signatures.strings,
        text.replace,
        "REPLACE(s, old, new)",
        "s with every old replaced by new; an empty old changes nothing",
    ),
    ScalarFunction(
        "CONCAT",
        1,
        ARGUMENTS_MAX,
        signatures.anything_to_string,
        text.concat,
        "CONCAT(x, ...)",
        "the arguments as one string; NULLs are passed over",
    ),
    ScalarFunction(
        "||",
        2,
        2,
        signatures.anything_to_string,
        text.join,
        "x || y",
        "both as one string; NULL where one is NULL",
    ),
    ScalarFunction(
        "STARTS_WITH",
        2,
        2,
        signatures.starts_with,
        text.starts_with,
        "STARTS_WITH(s, prefix)",
        "whether s begins with the prefix",
    ),
    ScalarFunction(
        "POSITION",
        2,
        2,
        signatures.position,
        text.position,
        "POSITION(part, s)",
        "the place of the first occurrence of part in s, counted from 1; 0 if there is none",
    ),
    ScalarFunction(
        "COUNT_CHAR",
        2,
        2,
        signatures.position,
        splits.count_char,
        "COUNT_CHAR(s, part)",
        "the number of occurrences of part in s, without overlaps",
    ),
    ScalarFunction(
        "SPLIT_PART",
        3,
        3,
        signatures.split,
        splits.split_part,
        "SPLIT_PART(s, delimiter, n)",
        "the n-th part of s between delimiters, from 1, or from -1 at the end; "
        "an empty string where there is none; an error for 0",
    ),
    ScalarFunction(
        "SPLIT_INDEX",
        3,
        3,
        signatures.split,
        splits.split_index,
        "SPLIT_INDEX(s, delimiter, n)",
        "the n-th part of s between delimiters, from 0; NULL where there is none",
    ),
    ScalarFunction(
        "REGEXP_LIKE",
        2,
        2,
        signatures.patterned(BOOLEAN),
        regexes.regexp_like,
        "REGEXP_LIKE(s, pattern)",
        "whether a regular expression (RE2, a string literal) matches anywhere in s",
    ),
    ScalarFunction(
        "SIMILAR_TO",
        2,
        2,
        signatures.similar,
        regexes.similar_to,
        "SIMILAR_TO(s, pattern), s SIMILAR TO pattern",
        "whether the whole of s is like the pattern, a string literal: % and _ as of LIKE, and |, *, +, ?, "
        "{2,3}, brackets and [a-z] as of regular expressions",
    ),
    ScalarFunction(
        "REGEXP_EXTRACT",
        2,
        3,
        signatures.patterned(STRING),
        regexes.regexp_extract,
        "REGEXP_EXTRACT(s, pattern [, group])",
        "the first match, or a group of it by its number; NULL where nothing matches, "
        "an empty string for a group that takes no part",
    ),
    ScalarFunction(
        "LEFT",
        2,
        2,
        signatures.cut,
        padding.left,
        "LEFT(s, n)",
        "the first n characters; for a negative n all but the last -n",
    ),
    ScalarFunction(
        "RIGHT",
        2,
        2,
        signatures.cut,
        padding.right,
        "RIGHT(s, n)",
        "the last n characters; for a negative n all but the first -n",
    ),
    ScalarFunction(
        "LPAD",
        2,
        3,
        signatures.padded,
        padding.left_padded,
        "LPAD(s, n [, fill])",
        "s with blanks (or this text, over and over) before it up to n characters; "
        "what is longer is cut at its end; an error above 4,096",
    ),
    ScalarFunction(
        "RPAD", 2, 3, signatures.padded, padding.right_padded, "RPAD(s, n [, fill])", "the same behind it"
    ),
    ScalarFunction(
        "REPEAT",
        2,
        2,
        signatures.cut,
        padding.repeated,
        "REPEAT(s, n)",
        "s n times; an empty string for 0 and below; an error above 4,096 characters",
    ),
    ScalarFunction(
        "REVERSE",
        1,
        1,
        signatures.strings,
        padding.reversed_,
        "REVERSE(s)",
        "the characters of s from the last to the first",
    ),
    ScalarFunction(
        "INITCAP",
        1,
        1,
        signatures.strings,
        padding.initcap,
        "INITCAP(s)",
        "the first letter of each word in upper case, the others in lower case; a word is letters and digits",
    ),
    ScalarFunction(
        "TRANSLATE",
        3,
        3,
        signatures.strings,
        padding.translated,
        "TRANSLATE(s, from, to)",
        "each character of s that is in from replaced by that at the same place of to, "
        "or left out where to is shorter",
    ),
    ScalarFunction(
        "CONCAT_WS",
        2,
        ARGUMENTS_MAX,
        signatures.anything_to_string,
        text.concat_with,
        "CONCAT_WS(separator, x, ...)",
        "the arguments that are not NULL as one string, with the separator between them",
    ),
    ScalarFunction(
        "CONTAINS",
        2,
        2,
        signatures.starts_with,
        padding.contains,
        "CONTAINS(s, part)",
        "whether part is in s",
    ),
    ScalarFunction(
        "ENDS_WITH",
        2,
        2,
        signatures.starts_with,
        padding.ends_with,
        "ENDS_WITH(s, suffix)",
        "whether s ends with the suffix",
    ),
    ScalarFunction(
        "STRPOS",
        2,
        2,
        signatures.position,
        unreachable,
        "STRPOS(s, part)",
        "POSITION(part, s)",
        _turned_position,
    ),
    ScalarFunction(
        "OCTET_LENGTH",
        1,
        1,
        signatures.length,
        padding.octets,
        "OCTET_LENGTH(s)",
        "the number of bytes of s in UTF-8, or of BYTES",
        _length_of("OCTET_LENGTH"),
    ),
    ScalarFunction(
        "ASCII",
        1,
        1,
        signatures.measured,
        padding.code_point,
        "ASCII(s)",
        "the code point of the first character; 0 for an empty string",
    ),
    ScalarFunction(
        "CHR",
        1,
        1,
        signatures.character,
        padding.character,
        "CHR(n)",
        "the character of a code point; an error where there is none, and for 0",
    ),
    ScalarFunction(
        "MD5",
        1,
        1,
        signatures.strings,
        digests.md5,
        "MD5(s)",
        "the MD5 digest of s in UTF-8, 32 hexadecimal digits",
    ),
    ScalarFunction(
        "SHA1", 1, 1, signatures.strings, digests.sha1, "SHA1(s)", "the SHA-1 digest, 40 hexadecimal digits"
    ),
    ScalarFunction(
        "SHA256",
        1,
        1,
        signatures.strings,
        digests.sha256,
        "SHA256(s)",
        "the SHA-256 digest, 64 hexadecimal digits",
    ),
    ScalarFunction(
        "REGEXP_COUNT",
        2,
        2,
        signatures.patterned(BIGINT),
        regexes.regexp_count,
        "REGEXP_COUNT(s, pattern)",
        "how often the pattern matches in s, without overlaps",
    ),
    ScalarFunction(
        "REGEXP_REPLACE",
        3,
        4,
        signatures.replaced,
        regexes.regexp_replace,
        "REGEXP_REPLACE(s, pattern, new [, 'g'])",
        "s with the first match (with 'g' every one) replaced; in new, \\1 is a group, \\0 the match; "
        "with 'i' in any case",
    ),
)
