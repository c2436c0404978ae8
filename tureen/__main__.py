"""``python -m tureen``: the command, where its script is not on the path."""

from tureen.cli import main

main(prog_name="tureen")
