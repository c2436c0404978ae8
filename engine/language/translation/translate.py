"""A statement of another system as one of this language that means the same, or why there is none."""

from __future__ import annotations

from dataclasses import dataclass

from engine.language.bind.environment import Catalogue
from engine.language.dialect import parse_tree, tokenize
from engine.language.places import Text
from engine.language.query import Statement
from engine.language.statements import parse
from engine.language.translation.dialects import REWRITINGS, DialectName
from engine.language.translation.edits import Edit, Tokens, applied
from engine.language.translation.quoted_names import quoted_names, tokens_with_backticks
from engine.model.limits import Limits
from tureen.errors import TureenError


@dataclass(frozen=True, slots=True)
class Translated:
    """sql: the statement. remarks: where it means something else, and what to see to. statement: what it
    means; None where no catalogue was given.
    """

    sql: str
    remarks: tuple[str, ...]
    statement: Statement | None


def translate(
    sql: str, dialect: DialectName, limits: Limits, catalogue: Catalogue | None = None
) -> Translated:
    """A statement with the rewritings of a dialect. catalogue: the streams that it may read; None: names and
    types are not checked.

    Raises what the grammar refuses, and with a catalogue the binder too: SyntaxRefused, NotSupported and so
    on, each with its place in the text that was given and, mostly, what to write.
    """
    edits = _edits(sql, dialect)
    written = applied(sql, edits)
    try:
        if catalogue is None:
            parse_tree(Text(written), limits)
            statement = None
        else:
            statement = parse(written, catalogue, limits)
    except TureenError as refusal:
        _place(refusal, sql, written, edits)
        raise
    remarks = dict.fromkeys(edit.remark for edit in edits if edit.remark is not None)
    return Translated(written, tuple(remarks), statement)


def _edits(sql: str, dialect: DialectName) -> list[Edit]:
    tokens = Tokens(
        sql, tokens_with_backticks(sql) if quoted_names in REWRITINGS[dialect] else tokenize(Text(sql))
    )
    return sorted(
        (edit for rewriting in REWRITINGS[dialect] for edit in rewriting(tokens)),
        key=lambda one: (one.begin, one.end),
    )


def _place(refusal: TureenError, sql: str, written: str, edits: list[Edit]) -> None:
    """Have a refusal of what was written tell its place in what was given."""
    if refusal.line is None or refusal.column is None:
        return
    lines = written.split("\n")
    offset = sum(len(line) + 1 for line in lines[: refusal.line - 1]) + refusal.column - 1
    moved = 0
    for edit in edits:
        begin = edit.begin + moved
        if offset < begin:
            break
        if offset < begin + len(edit.text):
            offset = begin
            break
        moved += len(edit.text) - (edit.end - edit.begin)
    given = min(max(offset - moved, 0), len(sql))
    refusal.line = sql.count("\n", 0, given) + 1
    refusal.column = given - sql.rfind("\n", 0, given)
