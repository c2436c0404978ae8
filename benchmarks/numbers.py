"""Lists of numbers on a command line: `--queries 1,10,100` and `--queries 1 10 100` are the same."""

import argparse
from collections.abc import Sequence
from typing import Any


class Numbers(argparse.Action):
    """Collects whole numbers of at least 1, apart by commas, blanks or both; use with nargs="+"."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: str | Sequence[Any] | None,
        option_string: str | None = None,
    ) -> None:
        """Set the attribute to a list of int."""
        words = " ".join(map(str, values or ())).replace(",", " ").split()
        try:
            numbers = [int(word.replace("_", "")) for word in words]
        except ValueError:
            numbers = []
        if not numbers or min(numbers) < 1:
            parser.error(f"{option_string} takes numbers of at least 1, as in 1,10,100")
        setattr(namespace, self.dest, numbers)
