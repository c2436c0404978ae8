"""A query that comes without a tree has the predicates that its tree has."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from engine.language.query import Query
from engine.language.statements import parse
from engine.language.templates import Template, Templates
from engine.model.limits import Limits
from engine.model.step import BEGINNING, Registration
from engine.queries.admitted_query import AdmittedQuery
from engine.stems.factors import Factors, factors
from tests.language import fixtures

COLUMNS = {
    "flight": ["0", "5", "-3", "2147483647", "1.5", "9223372036854775806", "9223372036854775807", "NULL"],
    "delay": ["0", "-1", "7.25", "1e300", "2.50"],
    "price": ["0", "10.25", "-7", "0.001"],
    "carrier": ["''", "'AA'", "'it''s'", "'AA '", "'é'"],
    "ts": ["'2013-01-31'", "'2013-01-31 12:00:00.5'", "TIMESTAMP '2013-01-31'", "DATE '2013-01-31'"],
    "day": ["'2013-01-31'", "DATE '2013-02-01'", "TIMESTAMP '2013-01-31 12:00:00'"],
}
OPERATORS = ["=", "<>", "<", "<=", ">", ">="]
comparisons = st.sampled_from(list(COLUMNS)).flatmap(
    lambda column: st.tuples(
        st.just(column),
        st.sampled_from(OPERATORS),
        st.lists(st.sampled_from(COLUMNS[column]), min_size=3, max_size=3),
    )
)


@given(st.lists(comparisons, max_size=5))
def test_predicates_without_a_tree_are_those_of_the_tree(each: list[tuple[str, str, list[str]]]) -> None:
    templates = Templates(fixtures.CATALOGUE, Limits())
    for turn in range(3):
        conjuncts = [f"{column} {op} {constants[turn]}" for column, op, constants in each]
        where = f" WHERE {' AND '.join(conjuncts)}" if conjuncts else ""
        text = f"SELECT flight FROM flights [RANGE 10 MINUTES]{where}"
        whole = parse(text, fixtures.CATALOGUE, Limits())
        assert isinstance(whole, Query)
        coming = AdmittedQuery.of(Registration("q", text), templates.read(text), BEGINNING)
        found = coming.predicates()
        assert [source for source, _ in found] == [source for source, _ in whole.predicates()]
        for (_, one), (_, predicate) in zip(found, whole.predicates(), strict=True):
            assert (one if isinstance(one, Factors) else factors(one)) == factors(predicate)
        assert coming.like.scan.window == whole.scan.window
        assert coming.query == whole


def test_a_conjunction_of_comparisons_needs_no_tree() -> None:
    templates = Templates(fixtures.CATALOGUE, Limits())
    form = "SELECT flight FROM flights WHERE carrier = '{}' AND delay > {}"
    reads = [templates.read(form.format(f"u{number}", number)) for number in range(5)]
    for read in reads[2:]:
        assert isinstance(read.template, Template)
        coming = AdmittedQuery.of(Registration("q", read.text), read, BEGINNING)
        assert all(isinstance(one, Factors) for _, one in coming.predicates())
        assert coming.like is coming.template.selection.like  # type: ignore[attr-defined]
        assert read._statement is None
