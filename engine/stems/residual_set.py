"""The residual predicates of standing queries: which there are, and which slots share each."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np

from engine.model import expressions as ex
from engine.model.batch import Int32Array
from engine.stems.residual import ResidualPredicate
from engine.store.matches.cohorts import SELECTIVE
from engine.store.matches.row_slots import RowSlots


class ResidualSet:
    """Equal predicates are one module, whoever has them."""

    def __init__(self) -> None:
        self.modules: dict[ex.Expression, ResidualPredicate] = {}
        self.calling: dict[str, ResidualPredicate] = {}
        """Those of them that call users' functions, by name."""
        self._of: dict[int, tuple[ResidualPredicate, ...]] = {}
        self._slot_of: dict[ex.Expression, int] = {}
        self._whole: dict[int, ex.Expression] = {}
        """By slot, the predicate that the residuals are of."""
        self._names = 0

    def __len__(self) -> int:
        return len(self.modules)

    def slots(self) -> Iterable[int]:
        """The slots that have residuals."""
        return self._of.keys()

    def of(self, slot: int) -> tuple[ResidualPredicate, ...]:
        """A slot's."""
        return self._of.get(slot, ())

    def slot_of(self, predicate: ex.Expression) -> int | None:
        """The slot of a predicate with residuals, if it stands."""
        return self._slot_of.get(predicate)

    def share(self, slot: int, predicate: ex.Expression, residuals: tuple[ex.Expression, ...]) -> None:
        """A slot gets a predicate and its residuals; it is placed afterwards."""
        self._slot_of[predicate], self._whole[slot] = slot, predicate
        modules = []
        for residual in residuals:
            module = self.modules.get(residual)
            if module is None:
                self._names += 1
                module = ResidualPredicate(_name(self._names, residual), residual)
                self.modules[residual] = module
                if module.users:
                    self.calling[module.name] = module
            modules.append(module)
        self._of[slot] = tuple(modules)

    def place(self, slots: Sequence[int], place: Int32Array) -> None:
        """Slots are new or have other places. place: by slot, its bit or SELECTIVE."""
        for slot in slots:
            for module in self._of.get(slot, ()):
                module.drop(slot)
                (module.selective if place[slot] == SELECTIVE else module.dense).add(slot)

    def drop(self, slot: int, gone: Callable[[str], None]) -> bool:
        """A slot goes; whether it had residuals. gone: told the names of modules that nobody shares now."""
        if slot not in self._of:
            return False
        del self._slot_of[self._whole.pop(slot)]
        for module in self._of.pop(slot):
            module.drop(slot)
            if not module.dense and not module.selective and module.predicate in self.modules:
                del self.modules[module.predicate]
                self.calling.pop(module.name, None)
                gone(module.name)
        return True

    def needed(self, pairs: RowSlots) -> list[ResidualPredicate]:
        """The predicates that some row may have to visit: of slots with a bit, and of slots in pairs."""
        modules = {module.name: module for module in self.modules.values() if module.dense}
        if len(pairs):
            for slot in np.unique(pairs.slots).tolist():
                for module in self._of.get(slot, ()):
                    modules[module.name] = module
        return list(modules.values())

    def _check(self, dense: set[int]) -> None:
        """dense: slots with a bit."""
        assert self._whole.keys() == self._of.keys()
        assert self._slot_of == {one: slot for slot, one in self._whole.items()}
        for slot, modules in self._of.items():
            for module in modules:
                assert (slot in module.dense) == (slot in dense)
                assert (slot in module.selective) == (slot not in dense)
        assert self.calling == {one.name: one for one in self.modules.values() if one.users}
        for predicate, module in self.modules.items():
            assert module.predicate == predicate
            assert module.dense | module.selective
            assert all(module in self._of[slot] for slot in module.dense | module.selective)


def _name(number: int, residual: ex.Expression) -> str:
    """What the module is called: by its number, and the users' functions that it calls."""
    called = dict.fromkeys(one.name for one in ex.user_functions(residual))
    return " ".join([f"residual-{number}", *called])
