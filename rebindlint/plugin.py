"""What a rule file and a fixer file define.

A rule is a query over facts: it says which facts are its own (``owns``) and which shape of statement it
speaks of (``shape``, a LibCST matcher tried on the statement of the fact, at any depth). A fixer of the same
code gets that statement's node and the fact, and gives back the statements to stand there, or declines.
Neither reads files, walks trees or knows positions.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import libcst as cst
import libcst.matchers as m

from rebindlint.model import Applicability, Dialect, Rebinding

__all__ = ["FixContext", "Fixer", "Replacement", "Rule"]


class Rule(ABC):
    """One rule. The docstring of its module is its page (Markdown, headings as in ``docs/writing-a-rule.md``)."""

    code: ClassVar[str]
    name: ClassVar[str]
    shape: ClassVar[m.BaseMatcherNode | m.OneOf[m.BaseMatcherNode] | None] = None

    @abstractmethod
    def owns(self, fact: Rebinding) -> bool:
        """Is this fact what the rule speaks of?"""

    @abstractmethod
    def message(self, fact: Rebinding) -> str:
        """One sentence: what is bound where, and what would go wrong."""

    def advice(self, fact: Rebinding) -> str:
        """What to change by hand; shown when no fix is offered."""
        return ""


@dataclass(frozen=True, slots=True)
class FixContext:
    """What a fixer may ask about the file it edits.

    ``dialect`` is the tree's own replace helper. ``local_name(module, function)`` gives the name under which a
    function is to be called in this file and notes that the import is needed (existing imports are reused).
    ``temporary(stem)`` gives a name that the enclosing function does not use, ``attribute(stem)`` an attribute that the file does not.
    ``is_tensor(expression)`` says that an expression of the statement is a tensor on every path, never None, ``starts_as_none(receiver, name)``
    that the class sets the attribute to None before any hook runs. ``indent`` is one step of indentation, ``width`` how many columns are
    left for a statement.
    """

    dialect: Dialect
    local_name: Callable[[str, str], str]
    temporary: Callable[[str], str]
    attribute: Callable[[str], str]
    is_tensor: Callable[[str], bool] = lambda _: False
    starts_as_none: Callable[[str, str], bool] = lambda *_: False
    indent: str = "    "
    width: int = 80


@dataclass(frozen=True, slots=True)
class Replacement:
    """The statements that take the place of the fact's statement."""

    statements: Sequence[cst.SimpleStatementLine | cst.BaseCompoundStatement]
    applicability: Applicability
    message: str
    notes: tuple[str, ...] = field(default=())


class Fixer(ABC):
    """Rewrites the statement of a finding with the same code.

    ``scope``: what ``fix`` is given: the ``statement`` of the fact, or the ``guard``, the ``if`` around it that skipped the refresh
    (the statement, when nothing did).
    """

    code: ClassVar[str]
    scope: ClassVar[str] = "statement"

    @abstractmethod
    def fix(
        self, statement: cst.SimpleStatementLine | cst.BaseCompoundStatement, fact: Rebinding, context: FixContext
    ) -> Replacement | None:
        """The statement's replacement, or None when there is no right one."""
