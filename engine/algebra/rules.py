"""Questions that each operator answers in a file of its own folder.

A question is a function whose first argument is a stage; its body is what those operators say that say
nothing of their own:

    @asked_of("flow")
    def below(stage: Stage, above: Above) -> Above:
        \"\"\"What a loss of rows below a stage has above it.\"\"\"
        return above

What ``engine/algebra/limit/flow.py`` defines as ``below`` is what LIMIT says. With ``each=True`` there is no
common answer: every operator has to say its own. Rules are found once, when the question is first asked; then
a question costs a look into a table by the stage's class.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar

from engine.algebra.operator import Operator
from engine.algebra.operators import OPERATORS, Stage

P = ParamSpec("P")
R = TypeVar("R")

Rule = Callable[Concatenate[Any, P], R]


class Question(Generic[P, R]):
    """A function of a stage, and of more, which a rule of its operator answers."""

    def __init__(self, facet: str, common: Rule[P, R], *, each: bool) -> None:
        self.facet = facet
        self.common = common
        self.each = each
        self.__name__ = common.__name__
        self.__doc__ = common.__doc__

    def __call__(self, stage: Stage, *args: P.args, **kwargs: P.kwargs) -> R:
        return self.rules[type(stage)](stage, *args, **kwargs)

    @cached_property
    def rules(self) -> dict[type[Operator], Rule[P, R]]:
        """What answers, by operator. Raises LookupError where one has no rule and there is no common one."""
        own = {operator: self._own(operator) for operator in OPERATORS}
        silent = [operator.__name__ for operator, rule in own.items() if rule is None]
        if self.each and silent:
            raise LookupError(f"{self.__name__}, of {self.facet}.py, is not answered by {', '.join(silent)}")
        return {operator: rule or self.common for operator, rule in own.items()}

    def _own(self, operator: type[Operator]) -> Rule[P, R] | None:
        module = f"{folder_of(operator)}.{self.facet}"
        rule = None if find_spec(module) is None else getattr(import_module(module), self.__name__, None)
        return None if isinstance(rule, Question) else rule  # which another rule there asks


def folder_of(operator: type[Operator]) -> str:
    """The package of an operator."""
    return operator.__module__.rpartition(".")[0]


QUESTIONS: list[Question[..., Any]] = []
"""All that were defined, in modules that are imported."""


def asked_of(facet: str, *, each: bool = False) -> Callable[[Rule[P, R]], Question[P, R]]:
    """Makes a question of a function. facet: the file in each operator's folder that has its rules."""

    def question(common: Rule[P, R]) -> Question[P, R]:
        made = Question(facet, common, each=each)
        QUESTIONS.append(made)
        return made

    return question
