"""Summaries of streams: sketches and histograms of an attribute over cells of values and time."""
