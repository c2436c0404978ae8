"""The matches of the predicates of queries over a set of sources, as the Query SteMs keep them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from engine.model.source import SourceName
from engine.queries.maintenance_modes import Predicates
from engine.sources.source import Source
from engine.standing.query import StandingQuery
from engine.stems.match_place import Place, slot_at


class PredicateMatches:
    """One owner, as the engine."""

    def __init__(self, sources: Mapping[SourceName, Source]) -> None:
        self._sources = sources

    def keep(self, wanted: Sequence[Predicates], *, apply: bool) -> list[tuple[Place, ...]]:
        """Where the matches of each predicate are kept from now on, for each query. apply: False where the
        rows are about to come.
        """
        places: dict[SourceName, Iterator[Place]] = {}
        for name, source in self._sources.items():
            mine = [predicate for each in wanted for of, predicate in each if of == name]
            places[name] = iter(source.matches.keep(mine, apply=apply))
        return [tuple([next(places[of]) for of, _ in each]) for each in wanted]

    def release(self, query: StandingQuery) -> None:
        """A query needs its matches no more."""
        for name, (slot, _) in query.places():
            self._sources[name].matches.release([slot])

    def release_kept(self, predicates: Predicates, places: Sequence[Place]) -> None:
        """What :meth:`keep` returned for a query is needed no more."""
        for (name, _), place in zip(predicates, places, strict=True):
            self._sources[name].matches.release([slot_at(place)])

    def catch_up(self, standing: Iterable[StandingQuery]) -> None:
        """All matches of these are needed at once."""
        slots: dict[SourceName, list[int]] = {}
        for one in standing:
            for name, (slot, _) in one.places():
                slots.setdefault(name, []).append(slot)
        for name, mine in slots.items():
            self._sources[name].matches.need(mine)

    def erring(self, standing: Mapping[str, StandingQuery]) -> Iterator[tuple[str, tuple[int, ...]]]:
        """Queries whose predicates met errors, and how many each."""
        if any(source.queries.slots.errors.any() for source in self._sources.values()):
            for query_id, query in standing.items():
                counts = self.errors_of(query)
                if any(counts):
                    yield query_id, counts

    def errors_of(self, query: StandingQuery) -> tuple[int, ...]:
        """How many errors each of its predicates met, while matches were kept."""
        return tuple(
            int(self._sources[name].queries.slots.errors[slot]) for name, (slot, _) in query.places()
        )

    def restore_errors(
        self, standing: Mapping[str, StandingQuery], errors: Mapping[str, Sequence[int]]
    ) -> None:
        """errors: of each query's predicates, as saved."""
        by_slot: dict[SourceName, dict[int, int]] = {name: {} for name in self._sources}
        for query_id, counts in errors.items():
            places = list(standing[query_id].places())
            if len(places) == len(counts):
                for (name, (slot, _)), count in zip(places, counts, strict=True):
                    by_slot[name][slot] = count
        for name, found in by_slot.items():
            self._sources[name].matches.restore_errors(found)

    def _check(self, standing: Iterable[StandingQuery]) -> None:
        for query in standing:
            for name, (slot, generation) in query.places():
                assert self._sources[name].queries.slots.generations[slot] == generation
