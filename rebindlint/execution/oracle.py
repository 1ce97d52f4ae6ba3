"""Answers to questions that configuration decides: the same in both runs of one execution.

An execution follows a *plan*: answers for some questions, a default for the rest. Whatever it asks beyond
the plan is recorded in order, for who explores the arms that were not taken.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rebindlint.execution.steering import Aim

__all__ = ["FAR", "MEANT", "Oracle"]


MEANT = "is"  # begins what a plan has for a label that is to equal a constant, whatever it is compared with first
FAR = 100  # rank of questions asked where nothing is bound: their arms are taken last, and only some of them


class Oracle:
    def __init__(
        self,
        plan: dict[Hashable, int],
        default: int,
        avoid: frozenset[tuple[Hashable, int]] | set[tuple[Hashable, int]] = frozenset(),
    ) -> None:
        self.plan = plan
        self.default = default
        self.answers: dict[Hashable, int] = {}
        self.asked: list[tuple[Hashable, int]] = []  # in order, with the number of options
        self.loading: list[tuple[Hashable, int]] = []  # asked before the hook ran
        self.ranks: dict[Hashable, int] = {}  # how far from the hook's own body a question was first asked
        self.places: dict[Hashable, Hashable] = {}  # where it was first asked
        self.goals: dict[Hashable, frozenset[int]] = {}  # the binding statements that another answer leads to
        # of how many questions the answer to one may have decided, how much was asked, which one, what was missed
        self.failed: list[tuple[int, int, Hashable, frozenset[int]]] = []
        self.aims: list[Aim] = []  # conditions that did not lead to statements which bind something
        self.aimed: Aim | None = None  # the one that the path is to get into the other arm
        self.idle: dict[Hashable, int] = {}  # added to the rank of a question whose other answer leads to none
        self.consulted: list[Hashable] = []  # every question that came up, also again
        # what a check hung on that the path failed, and asked nothing itself; and the binding statements behind it
        self.refusing: tuple[tuple[Hashable, ...], frozenset[int]] = ((), frozenset())
        self.missing: tuple[Hashable, ...] = ()  # what led to the deletion of what the second run missed
        self.rank = 0
        self.fixed: set[Hashable] = set()  # answers that must not be flipped
        self._avoid = avoid  # answers after which the first run raised
        # label -> the constant that the plan has it equal; comparisons with others are added to the plan as they come up
        self._meant = {key[1]: key[2] for key in plan if isinstance(key, tuple) and key[0] == MEANT}
        self._at: dict[Hashable, int] = {}  # first answer at a place in the source
        self._equal: dict[str, str] = {}  # label -> the one constant it equals
        self._unequal: set[tuple[str, str]] = set()
        self.reinterpreted: set[tuple[str, str]] = set()  # dtypes of memory, and the ones it was viewed as
        self.recording = True
        self.afresh = False  # what is first asked now has nothing to do with what was answered at its place

    def ask(self, key: Hashable, place: Hashable, options: int = 2, default: int | None = None) -> int:
        """The answer to ``key``, 0 … options-1. A key first met in the second run takes the first run's answer at its place."""
        self.consulted.append(key)
        known = self.answers.get(key)
        if known is not None:
            return known
        if key in self.plan:
            answer = self.plan[key]
        elif not self.recording and not self.afresh and place in self._at:
            answer = self._at[place]
        else:
            answer = self.default if default is None else default
        answer = min(answer, options - 1)
        if key not in self.plan and (key, answer) in self._avoid:
            answer = next((i for i in range(options) if (key, i) not in self._avoid), answer)
        self.answers[key] = answer
        self._at.setdefault(place, answer)
        self.asked.append((key, options))
        self.ranks[key] = self.rank
        self.places[key] = place
        return answer

    def assume(self, key: Hashable, answer: int) -> int:
        """An assertion: the answer is given and the other arm is of no interest."""
        known = self.answers.get(key)
        if known is not None:
            return known
        self.answers[key] = answer
        self.fixed.add(key)
        return answer

    def equal(self, left: str, right: str, place: Hashable, *, constant: bool) -> bool:
        """Whether a label equals another; a label equals at most one constant."""
        key = ("==", left, right)
        known = self._equal.get(left)
        if constant and known is not None:
            self.consulted.append(("==", left, known))
            if known != right:
                self.consulted.append(key)  # it was not asked, but another constant leads elsewhere
            return known == right
        if (left, right) in self._unequal:
            self.consulted.append(key)
            return False
        meant = self._meant.get(left) if constant else None
        if meant is not None:
            self.plan.setdefault(key, int(meant == right))
        answer = bool(self.ask(key, place))
        if answer and constant:
            self._equal[left] = right
        elif not answer:
            self._unequal.add((left, right))
        return answer

    def constant_of(self, label: str) -> str | None:
        """The one constant that a label was decided to equal."""
        return self._equal.get(label)

    def settle(self, label: str, constant: str) -> None:
        """A label equals a constant by another decision."""
        self._equal.setdefault(label, constant)
