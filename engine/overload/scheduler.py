"""The scheduler: which of the modules with something in their queue runs next.

    scheduler.add(...)            a module comes
    scheduler.put(name, batch)    something waits at it
    scheduler.choose(now)         the module to run, by the policy
    scheduler.take(module)        its oldest batch, to be run
    scheduler.done(...)           what that took and what came out: estimates, and charts where they moved

Whoever runs the modules has the clock and the batches; here are numbers alone, so that nothing of time comes
into an answer. A decision costs O(log modules); charts are redone where an estimate moved by a fifth: when a
module was measured for the first time, and otherwise once in :data:`REDONE_EVERY` decisions at most.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from engine.model.attributes import Attribute
from engine.overload.policies.choices import SCHEDULING_POLICIES
from engine.overload.policies.scheduling_policy import SchedulingPolicy
from engine.overload.progress_chart import ChartSlopes, Stage
from engine.overload.scheduled_module import COST_UNKNOWN, Charted, ScheduledModule, WaitingBatch
from tureen.errors import SettingsError

_ABOUT_POLICY = (
    "which batch is run next: the oldest (fifo), of the queue that was run longest ago (round-robin), where "
    "the next operator frees most memory a ns (greedy), where the steepest way ahead does (chain), the same "
    "within latencies (chain-deadline), in proportion to weights (weighted-fair)"
)
REDONE_EVERY = 16
"""Decisions between two times that charts are redone."""


class Scheduler:
    """One owner. Times and sizes as :mod:`engine.overload.scheduled_module` has them."""

    def __init__(self, policy: str = next(iter(SCHEDULING_POLICIES))) -> None:
        """Raises SettingsError for a policy there is not."""
        self._policy = _policy(policy)
        self._modules: dict[str, ScheduledModule] = {}
        self._feeders: dict[str, set[str]] = {}
        self._slopes = ChartSlopes[str]()
        self._numbers = 0
        self._moved: set[str] = set()
        self._decided = 0
        self.size = 0.0
        """What waits in all queues."""

    def __len__(self) -> int:
        return len(self._modules)

    def __contains__(self, name: str) -> bool:
        return name in self._modules

    def __iter__(self) -> Iterator[ScheduledModule]:
        return iter(self._modules.values())

    def __getitem__(self, name: str) -> ScheduledModule:
        return self._modules[name]

    def get(self, name: str) -> ScheduledModule | None:
        """The module of a name; None where there is none."""
        return self._modules.get(name)

    # --- modules ----------------------------------------------------------------------------------

    def add(
        self,
        name: str,
        outputs: Mapping[str, float] | Iterable[str] = (),
        *,
        plan: str | None = None,
        weight: float = 1.0,
        cost: float = COST_UNKNOWN,
    ) -> ScheduledModule:
        """A module comes, after those that consume what it puts out. outputs: these, and how much each gets
        of a unit of size, 1 where nothing is known. plan: its own name where nothing is said.
        cost: of a unit.

        Raises KeyError for a consumer that is not there, ValueError for a weight that is not above 0.
        """
        if not weight > 0:
            raise ValueError(f"a weight is above 0, not {weight}")
        shares = dict(outputs) if isinstance(outputs, Mapping) else dict.fromkeys(outputs, 1.0)
        for consumer in shares:
            self._feeders[consumer].add(name)
        module = ScheduledModule(name, self._numbers, plan or name, weight, cost, shares)
        self._numbers += 1
        self._modules[name] = module
        self._feeders[name] = set()
        self._redo([name])
        return module

    def remove(self, name: str) -> None:
        """A module goes, with what waits at it, after those that feed it. Passed over where it is not there.

        Raises ValueError where others feed it.
        """
        module = self._modules.get(name)
        if module is None:
            return
        if self._feeders[name]:
            raise ValueError(f"{sorted(self._feeders[name])} feed {name}")
        del self._modules[name], self._feeders[name]
        for consumer in module.shares:
            self._feeders[consumer].discard(name)
        self.size -= module.size
        self._policy.rest(module)
        self._slopes.forget(name)
        self._moved.discard(name)

    def weigh(self, name: str, weight: float) -> None:
        """A plan has another weight. Raises KeyError, ValueError."""
        if not weight > 0:
            raise ValueError(f"a weight is above 0, not {weight}")
        self._modules[name].weight = weight

    # --- work -------------------------------------------------------------------------------------

    def put(self, name: str, batch: WaitingBatch) -> None:
        """A batch waits at a module."""
        module = self._modules[name]
        module.put(batch)
        self.size += batch.size
        self._policy.came(module, batch)
        if len(module.queue) == 1:
            self._policy.ready(module)

    def choose(self, now: float) -> ScheduledModule | None:
        """The module to run; None where nothing waits. The same until something comes or is run."""
        return self._policy.choose(now)

    def take(self, module: ScheduledModule) -> WaitingBatch:
        """The oldest batch of a module leaves its queue, to be run or not."""
        batch = module.take()
        self.size = max(0.0, self.size - batch.size)
        if module.queue:
            self._policy.ready(module)
        else:
            self._policy.rest(module)
        return batch

    def done(
        self, module: ScheduledModule, size: float, spent: float, produced: Mapping[str, float] | None = None
    ) -> None:
        """A module was run on a batch of a size for so long. produced: sizes by consumer; what was produced
        is put by the caller.
        """
        self._decided += 1
        is_first = not module.measured
        if module.measure(size, spent, produced or {}):
            self._moved.add(module.name)
        self._policy.ran(module, spent)
        if self._moved and (is_first or self._decided % REDONE_EVERY == 0):
            self._redo(self._moved)
            self._moved = set()

    # --- what can be read and set -----------------------------------------------------------------

    @property
    def policy(self) -> str:
        """The policy's name."""
        return self._policy.name

    @property
    def asks_demand(self) -> bool:
        """Whether the policy goes by weights or deadlines."""
        return self._policy.asks_demand

    def set_policy(self, name: str) -> None:
        """From the next decision on. Raises SettingsError. O(modules * log modules)."""
        policy = _policy(name)
        policy.estimated()
        for module in self._modules.values():
            if module.queue:
                policy.ready(module)
        self._policy = policy

    def attributes(self) -> tuple[Attribute, ...]:
        """Returns the attributes of the scheduler itself."""
        queued = sum(len(module.queue) for module in self)
        return (
            Attribute("policy", self.policy, _ABOUT_POLICY, tuple(SCHEDULING_POLICIES)),
            Attribute("modules", len(self), "modules with queues"),
            Attribute("queued_batches", queued, "batches that wait in all queues"),
            Attribute("queued_bytes", int(self.size), "bytes of these"),
        )

    def attributes_of(self, module: ScheduledModule, now: float) -> tuple[Attribute, ...]:
        """Returns the attributes of one module. now: in nanoseconds, as all its times."""
        spent = sum(one.spent for one in self)
        share = module.spent / spent if spent else 0.0
        return (
            Attribute("queued_rows", module.rows, "rows that wait"),
            Attribute("queued_bytes", int(module.size), "bytes that wait"),
            Attribute("oldest_ms", module.age(now) / 1e6, "ms for which the oldest row has waited"),
            Attribute("time_share", share, "share of the time that all modules took"),
            Attribute(
                "slope", module.chart.slope, "bytes a ns that go, from here on along the steepest segment"
            ),
        )

    # --- charts -----------------------------------------------------------------------------------

    def _redo(self, changed: Iterable[str]) -> None:
        """Charts of modules, and of all above them, go by what is estimated now."""
        concerned = set()
        ahead = [name for name in changed if name in self._modules]
        while ahead:
            name = ahead.pop()
            if name not in concerned:
                concerned.add(name)
                ahead += self._feeders[name]
        # A module comes after its consumers, so that in order of coming those below stand first.
        modules = sorted((self._modules[name] for name in concerned), key=lambda one: one.number)
        stages = {one.name: Stage(one.cost, tuple(one.shares.items())) for one in modules}
        self._slopes.redo([one.name for one in modules], stages)
        self._policy.estimated()
        for module in modules:
            slope, remaining = self._slopes.of(module.name), self._slopes.remaining(module.name)
            module.chart = Charted(module.cost, dict(module.shares), slope, remaining)
            if module.queue:
                self._policy.ready(module)

    def _check(self) -> None:
        for module in self:
            assert module.rows == sum(batch.rows for batch in module.queue)
            assert abs(module.size - sum(batch.size for batch in module.queue)) < 1e-6 * (1 + module.size)
            assert all(module.name in self._feeders[consumer] for consumer in module.shares)
        assert abs(self.size - sum(module.size for module in self)) < 1e-6 * (1 + self.size)


def _policy(name: str) -> SchedulingPolicy:
    if name not in SCHEDULING_POLICIES:
        raise SettingsError(
            f"there is no scheduling policy {name!r}", hint="one of " + ", ".join(SCHEDULING_POLICIES)
        )
    return SCHEDULING_POLICIES[name]()
