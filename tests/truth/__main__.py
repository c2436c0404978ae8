"""Print by how much tags and truth are apart, of each case and path: ``python -m tests.truth``."""

from __future__ import annotations

import argparse
from collections import defaultdict

import numpy as np

from tests.truth.cases import CASES
from tests.truth.runs import PATHS, runs


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.truth", description=__doc__)
    parser.add_argument("--count", type=int, default=8, help="allocations of each case (%(default)s)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--cases", nargs="+", default=list(CASES), metavar="CASE")
    parser.add_argument("--paths", nargs="+", default=PATHS, choices=PATHS)
    parser.add_argument("--each", action="store_true", help="print each allocation")
    options = parser.parse_args()
    print(
        f"{'path':12}{'case':28}{'runs':>5}{'mean':>9}{'largest':>9}{'wrong':>8}{'broken':>8}{'not held':>9}"
    )
    widest: dict[str, float] = defaultdict(float)
    for path in options.paths:
        for name in options.cases:
            found = list(runs(path, name, options.count, options.seed))
            if not found:
                continue
            apart = [one.apart for one in found]
            mean, largest = float(np.mean(apart)), max(apart, key=abs)
            widest[path] = max(widest[path], abs(mean))
            counts = sum(one.breaks for one in found), sum(one.unreachable for one in found)
            wrong = max(one.fp for one in found)
            print(
                f"{path:12}{name:28}{len(found):5}{mean:+9.4f}{largest:+9.4f}{wrong:8.4f}{counts[0]:8}{counts[1]:9}",
                flush=True,
            )
            for one in found if options.each else ():
                print(f"    told {one.told:.4f}  true {one.true:.4f}  {one.given}")
    for path, apart in widest.items():
        print(f"{path}: tag and truth are at most {apart:.4f} apart in the mean")


if __name__ == "__main__":
    main()
