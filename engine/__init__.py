"""The system of the papers: continuous queries over streams, shared.

Pure: no I/O, no clock, no threads, no randomness. Time comes in with the steps, data comes in as batches,
answers go out as immutable views. The same steps give the same answers and the same bits, always.
"""
