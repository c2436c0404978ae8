"""`python -m benchmarks` lists the benchmarks, `python -m benchmarks NAME` runs one."""

import sys

from benchmarks.harness import main

sys.exit(main(sys.argv[1:]))
