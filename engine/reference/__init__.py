"""What the engine promises, said once more as plainly as can be: the oracle of the tests.

Rows as tuples, one at a time, all recomputed; nothing is shared with the engine but the model, the parser and
the binder.
"""

from engine.reference.evaluator import Reference, ReferenceAnswer

__all__ = ["Reference", "ReferenceAnswer"]
