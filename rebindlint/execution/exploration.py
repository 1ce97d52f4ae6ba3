"""Which plans a hook is executed along: every arm that was seen and binds something, within a budget."""

from __future__ import annotations

import heapq
from collections.abc import Hashable, Iterator, Mapping, Set
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, TypeGuard

from rebindlint.execution.oracle import FAR, MEANT, Oracle

if TYPE_CHECKING:
    from rebindlint.execution.steering import Aim

__all__ = ["Explorer"]

_MEANT_RANK = 6  # of plans that mean a constant: as of questions asked that many calls away from the hook
_NOTHING: Mapping[int, int] = MappingProxyType({})
MAX_UNCOVERING = 2  # paths that are searched for alternatives which let a hidden binding stand
MAX_MISSES = 4  # paths that may miss their goal before it is given up
MAX_RETRIES = 16  # paths of a hook that give an answer which other paths have given, for a goal that none has reached
MAX_AIMED = 4  # conditions of a hook whose other arm is aimed at when nothing else leads to it
MAX_SPARED = 2  # paths of a hook that give another answer so as not to delete what the next run needs
MAX_EXTRA = 4  # alternatives tried for that, in one hook


class _Retries:
    """Plans that give another answer than a path did, for a goal that no path has reached.

    A goal that was tried for less often comes first, then an answer that decided with fewer others, then the path that had
    asked most: it was nearest.
    """

    def __init__(self) -> None:
        self._waiting: list[tuple[int, int, int, int, dict[Hashable, int], int, frozenset[int]]] = []
        self._number = 0
        self._tried = 0
        self._tried_for: dict[frozenset[int], int] = {}

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def add(self, among: int, asked: int, plan: dict[Hashable, int], default: int, goal: frozenset[int]) -> None:
        self._number += 1
        tried = self._tried_for.get(goal, 0)
        heapq.heappush(self._waiting, (tried, among, -asked, self._number, plan, default, goal))

    def take(self, covered: set[int], paths: list[Set[tuple[Hashable, int]]]) -> tuple[dict[Hashable, int], int] | None:
        while self._waiting and self._tried < MAX_RETRIES:
            before, among, asked, number, plan, default, goal = heapq.heappop(self._waiting)
            if goal <= covered or any(plan.items() <= path for path in paths):
                continue
            tried = self._tried_for.get(goal, 0)
            if tried >= MAX_MISSES:
                continue
            if tried > before:
                heapq.heappush(self._waiting, (tried, among, asked, number, plan, default, goal))
                continue
            self._tried += 1
            self._tried_for[goal] = tried + 1
            return plan, default
        self._waiting.clear()
        return None


def _is_equality(key: Hashable) -> TypeGuard[tuple[str, str, str]]:
    return isinstance(key, tuple) and key[0] == "=="


class Explorer:
    """Hands out plans until every arm that was seen has been taken once, or the budget is spent; arms near the hook first."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.executions = 0
        self.failures = 0
        self.only_promising = False  # the rest leads to no statement that binds anything
        self.promising = False  # the plan handed out last leads to statements that no path has executed
        self.avoid: set[tuple[Hashable, int]] = set()
        self.exhausted = False
        self.sampled = False  # arms that lead to no statement that binds anything were left out
        self._relented: set[tuple[Hashable, int]] = set()  # answers tried because a check had failed with the other
        self._spared: set[tuple[Hashable, int]] = set()  # answers tried so that nothing is deleted
        self._relents = _Retries()
        self._todo: list[tuple[int, int, dict[Hashable, int], int, frozenset[int], bool]] = [
            (-1, 0, {}, 0, frozenset(), False),
            (-1, 1, {}, 1, frozenset(), False),
        ]
        self.effective: set[int] = set()  # statements whose binding a first run left as the last one
        self._uncovering: dict[int, int] = {}  # statement -> how many paths tried to let its binding stand
        self._extra = 0
        self.covered: set[int] = set()  # statements executed so far
        self._number = 2
        self._taken: set[tuple[Hashable, int]] = set()
        self._places: dict[Hashable, Hashable] = {}  # question -> where it is asked
        self._missed: dict[frozenset[int], int] = {}  # goal -> paths that should have led to it and did not
        self._retries = _Retries()  # for conditions that failed
        self.aimed: Aim | None = None  # what the plan handed out last is to get into its other arm
        self._aims: dict[int, tuple[Aim, dict[Hashable, int], int]] = {}
        self._aimed = 0
        self._paths: list[Set[tuple[Hashable, int]]] = []  # the answers of each path so far
        self._opened: frozenset[int] = frozenset()  # goals that new questions of the last path may lead to
        self._barren: set[Hashable] = set()  # places where another answer, led to by no goal, made no difference
        self._asked_at: Hashable = None  # where the question is asked whose other answer the current plan takes

    def plans(self) -> Iterator[tuple[dict[Hashable, int], int]]:
        while self._todo or self._retries or self._relents or self._aims:
            self.aimed = None
            if self.executions - self.failures >= self.limit or self.failures >= 2 * self.limit:
                self.exhausted = True
                return
            if not self._todo or self._todo[0][0] >= FAR:
                retry = self._retry()
                if retry is not None:
                    self.executions += 1
                    self.promising, self._asked_at = True, None
                    yield retry
                    continue
                if not self._todo:
                    return
            if self._todo[0][0] >= FAR and self.executions - self.failures >= self.limit // 3:
                self.sampled = True
                return
            rank, _, plan, default, goal, uncovers = heapq.heappop(self._todo)
            if uncovers and (goal <= self.effective or self._extra >= MAX_EXTRA):
                continue
            self._extra += uncovers
            if rank >= 0 and not goal and (self.only_promising or self._place(plan) in self._barren):
                self.sampled = True
                continue
            if (
                rank < FAR
                and goal
                and not uncovers
                and (goal <= self.covered or self._missed.get(goal, 0) >= MAX_MISSES)
            ):
                self._push(rank + FAR, plan, default)  # another path has been there meanwhile, or none gets there
                continue
            self.executions += 1
            self.promising = bool(goal) or rank < 0
            self._asked_at = self._place(plan)
            there, failures = len(goal & self.covered), self.failures
            self._opened = frozenset()
            yield plan, default
            if goal and len(goal & self.covered) == there and self.failures == failures and not goal & self._opened:
                self._missed[goal] = self._missed.get(goal, 0) + 1

    def made_no_difference(self) -> None:
        """The current path bound what an earlier one had bound: other questions of the same place are as idle as this one."""
        if not self.promising and self._asked_at is not None:
            self._barren.add(self._asked_at)

    def _place(self, plan: dict[Hashable, int]) -> Hashable:
        return self._places.get(next(reversed(plan), None))

    def _retry(self) -> tuple[dict[Hashable, int], int] | None:
        """A path on which a condition failed whose arm none has taken, with the answer that it failed for given otherwise."""
        found = self._retries.take(self.covered, self._paths)
        return found or self._relents.take(self.covered, self._paths) or self._aim()

    def _aim(self) -> tuple[dict[Hashable, int], int] | None:
        """The start of a path on which a condition failed, from where on it is answered on purpose: that with most behind it first."""
        behind = {number: len(aim.goal - self.covered) for number, (aim, _, _) in self._aims.items()}
        number = max(behind, key=behind.__getitem__, default=0)
        if self._aimed >= MAX_AIMED or not behind.get(number):
            self._aims.clear()
            return None
        self._aimed += 1
        self.aimed, plan, default = self._aims[number]
        self._aims[number] = replace(self.aimed, goal=frozenset()), plan, default
        return plan, default

    def _with_another_value(self, oracle: Oracle, default: int) -> frozenset[int]:
        """Paths on which a label equals the constant that it was compared with in vain, because it had been found to equal another.

        What was asked before the label first came up is answered as it was. Gives the goals that they may lead to.
        """
        opened: frozenset[int] = frozenset()
        for key, goal in oracle.goals.items():
            if key in oracle.answers or not _is_equality(key) or goal <= self.covered:
                continue
            meant = (MEANT, *key[1:])
            if (meant, 1) in self._taken:
                continue
            self._taken.add((meant, 1))
            plan: dict[Hashable, int] = {}
            for asked, _ in [*oracle.loading, *oracle.asked]:
                if _is_equality(asked) and asked[1] == key[1]:
                    break
                plan[asked] = oracle.answers[asked]
            self._push(_MEANT_RANK, {**plan, meant: 1}, default, goal)
            opened |= goal
        return opened

    def _push(
        self,
        rank: int,
        plan: dict[Hashable, int],
        default: int,
        goal: frozenset[int] = frozenset(),
        *,
        uncovers: bool = False,
    ) -> None:
        self._number += 1
        heapq.heappush(self._todo, (rank, self._number, plan, default, goal, uncovers))

    def backtrack(self, oracle: Oracle, default: int) -> None:
        """The first run raised: the last answer was not to be had, so the same plan is tried with another.

        Where it was a check of what had been bound before, also with another answer to what that hung on.
        """
        self.failures += 1
        options_of = dict([*oracle.loading, *oracle.asked])
        keys, goal = oracle.refusing
        for key in keys:
            other = 1 - min(oracle.answers.get(key, 0), 1)
            if options_of.get(key) == 2 and key not in oracle.fixed and (key, other) not in self._relented:
                self._relented.add((key, other))
                self._relents.add(len(keys), len(oracle.asked), {**oracle.answers, key: other}, default, goal)
        for position in range(len(oracle.asked) - 1, -1, -1):
            key, options = oracle.asked[position]
            taken = oracle.answers[key]
            self.avoid.add((key, taken))
            for other in range(options):
                if (key, other) not in self.avoid:
                    prefix = {k: oracle.answers[k] for k, _ in oracle.asked[:position]}
                    self._taken.add((key, other))
                    self._push(-1, {**prefix, key: other}, default)
                    return
            if position < len(oracle.asked) - 6:
                return

    def spare(self, oracle: Oracle, default: int) -> None:
        """The second run missed what the first had deleted: the same path is tried with another answer to what led there."""
        options_of = dict(oracle.asked)
        for key in oracle.missing:
            other = 1 - min(oracle.answers.get(key, 0), 1)
            plan = {**oracle.answers, key: other}
            if options_of.get(key) != 2 or key in oracle.fixed or (key, other) in self._spared:
                continue
            if len(self._spared) < MAX_SPARED and not any(plan.items() <= path for path in self._paths):
                self._spared.add((key, other))
                self._push(-1, plan, default)

    def record(self, oracle: Oracle, default: int, hidden: Mapping[int, int] = _NOTHING) -> None:
        """Queue the arms that the path did not take.

        ``hidden`` are statements that bound something which a later statement of the path bound again, with how many questions
        had been asked by then. Where no path left their binding standing, arms behind them that were taken on other paths are
        tried on this one too.
        """
        hidden = {
            statement: asked
            for statement, asked in hidden.items()
            if statement not in self.effective and self._uncovering.get(statement, 0) < MAX_UNCOVERING
        }
        for statement in hidden:
            self._uncovering[statement] = self._uncovering.get(statement, 0) + 1
        prefix: dict[Hashable, int] = {}
        if any(key in oracle.plan for key, _ in oracle.loading):
            prefix = {key: oracle.answers[key] for key, _ in oracle.loading}
        for key, options in oracle.loading:  # only what the hook came to hang on matters of these
            goal = oracle.goals.get(key)
            for other in range(options) if goal else ():
                if other != oracle.answers[key] and (key, other) not in self._taken:
                    self._taken.add((key, other))
                    self._push(FAR // 2, {**prefix, key: other}, default, goal or frozenset())
        opened: set[int] = set()
        self._paths.append(oracle.answers.items())
        for position, (key, options) in enumerate(oracle.asked):
            covered_up = frozenset(statement for statement, asked in hidden.items() if asked <= position)
            if covered_up and key in oracle.goals and key not in oracle.fixed:
                other = 1 - min(oracle.answers[key], 1)
                self._push(oracle.ranks[key], {**prefix, key: other}, default, covered_up, uncovers=True)
            taken = oracle.answers[key]
            self._taken.add((key, taken))
            self._places.setdefault(key, oracle.places[key])
            goal = oracle.goals.get(key, frozenset())
            idle = 0 if goal else oracle.idle.get(key, 0)
            for other in range(options):
                if other == taken or key in oracle.fixed:
                    continue
                if (key, other) not in self._taken:
                    self._taken.add((key, other))
                    self._push(oracle.ranks[key] + idle, {**prefix, key: other}, default, goal)
                    opened |= goal
            prefix[key] = taken
        options_of = dict([*oracle.loading, *oracle.asked])
        for among, asked, key, goal in oracle.failed:
            if key not in oracle.fixed and not goal <= self.covered:
                for other in range(options_of.get(key, 0)):
                    if other != oracle.answers[key]:
                        self._retries.add(among, asked, {**oracle.answers, key: other}, default, goal)
        for aim in oracle.aims:
            if aim.condition not in self._aims and not aim.goal <= self.covered:
                self._aims[aim.condition] = aim, {k: oracle.answers[k] for k, _ in oracle.asked[: aim.asked]}, default
        opened |= self._with_another_value(oracle, default)
        self._opened = frozenset(opened)
