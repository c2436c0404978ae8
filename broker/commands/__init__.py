"""Subcommands of ``tureen`` that run or look at a broker."""
