"""The experiments with promising tuples: rows of two stores, ways to answer with too little time, measures.

Source: Ali, Aref, ElTabakh, *Scalability via Summaries: Stream Query Processing using Promising Tuples*,
section 5.
"""
