"""Array functions, compiled: the only place with tricks.

Each kernel takes and gives numpy arrays, mutates nothing but what it names as output, releases the
interpreter's lock while it runs, and has a plain twin in the tests that must agree on random input.
"""
