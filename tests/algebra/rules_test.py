"""Every operator has its folder, and every rule in it answers a question that somebody asks."""

from __future__ import annotations

import inspect
import pkgutil
from importlib import import_module
from pathlib import Path

import pytest

import engine
from engine.algebra.limit.stage import Limit
from engine.algebra.operators import OPERATORS, Stage
from engine.algebra.rules import QUESTIONS, Question, asked_of, folder_of

ALGEBRA = Path(engine.__path__[0]) / "algebra"
APART = {"stage", "__init__"}


@pytest.fixture(scope="module")
def questions() -> list[Question]:
    """All of the engine."""
    for module in pkgutil.walk_packages(engine.__path__, "engine."):
        import_module(module.name)
    return [question for question in QUESTIONS if question.common.__module__.startswith("engine.")]


def test_an_operator_is_a_folder_and_a_folder_an_operator() -> None:
    folders = {path.parent.name for path in ALGEBRA.glob("*/stage.py")}
    assert {folder_of(operator).rpartition(".")[2] for operator in OPERATORS} == folders
    assert len(OPERATORS) == len(folders)


def test_every_question_is_answered_by_every_operator(questions: list[Question]) -> None:
    for question in questions:
        assert question.rules.keys() == set(OPERATORS), question.__name__


def test_a_rule_takes_what_the_question_gives(questions: list[Question]) -> None:
    for question in questions:
        asked = list(inspect.signature(question.common).parameters)[1:]
        for operator, rule in question.rules.items():
            given = list(inspect.signature(rule).parameters)[1:]
            assert given == asked, (operator.__name__, question.__name__)


def test_no_two_questions_of_a_file_have_one_name(questions: list[Question]) -> None:
    names = [(question.facet, question.__name__) for question in questions]
    assert len(names) == len(set(names))


def test_all_that_a_folder_has_answers_a_question(questions: list[Question]) -> None:
    asked = {(question.facet, question.__name__) for question in questions}
    for path in sorted(ALGEBRA.glob("*/*.py")):
        if path.stem in APART:
            continue
        module = import_module(f"engine.algebra.{path.parent.name}.{path.stem}")
        rules = {
            name
            for name, value in vars(module).items()
            if inspect.isfunction(value) and value.__module__ == module.__name__ and not name.startswith("_")
        }
        assert rules, path
        assert {(path.stem, name) for name in rules} <= asked, path


def test_a_question_that_each_must_answer_names_who_does_not() -> None:
    @asked_of("stage", each=True)
    def unanswered(stage: Stage) -> None: ...

    with pytest.raises(LookupError, match=r"unanswered, of stage\.py, is not answered by Project"):
        unanswered(Limit(1))
    QUESTIONS.remove(unanswered)
