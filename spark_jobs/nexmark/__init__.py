"""Nexmark's generator: the people, auctions and bids of an auction house, by number.

settings (what to make) -> events (numbers to rows, pure) -> streams (the statements that declare them).
"""
