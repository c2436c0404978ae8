"""Scheduling policies: which of the modules with something in their queue runs next."""
