"""Loads the profiles that say how many examples are run."""

import tests.strategies  # noqa: F401
