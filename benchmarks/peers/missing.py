"""What a peer raises that cannot run on this machine."""


class PeerMissing(Exception):
    """Says in a word what is missing; the benchmark goes on without the peer."""
