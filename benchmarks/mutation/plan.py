"""The edits that make a mutant, by function, until they are put together to the texts of files."""

from __future__ import annotations

from dataclasses import dataclass, field

import libcst as cst

from benchmarks.mutation.positions import Position, is_documentation
from benchmarks.mutation.splice import Cut, Edit, insert, spliced, statements
from rebindlint.index import Index

__all__ = ["Plan"]


@dataclass(slots=True)
class Plan:
    """The edits of one mutant, by function, until they are put together."""

    index: Index
    edited: dict[int, tuple[Cut, cst.FunctionDef, list[cst.BaseStatement]]] = field(default_factory=dict)
    appended: dict[str, list[str]] = field(default_factory=dict)

    def node(self, own: Cut) -> cst.FunctionDef:
        return self.edited[id(own.function.node)][1] if id(own.function.node) in self.edited else own.node

    def put(self, own: Cut, new: cst.FunctionDef) -> None:
        behind = self.edited[id(own.function.node)][2] if id(own.function.node) in self.edited else []
        self.edited[id(own.function.node)] = (own, new, behind)

    def insert(self, own: Cut, position: Position, code: str) -> None:
        """At a position of the function as it was cut out: one position in each function."""
        torch = [] if "torch" not in code or _knows_torch(own) else statements("import torch", marked=False)
        self.put(own, insert(self.node(own), position.block, position.index, [*torch, *statements(code)]))

    def replace(self, own: Cut, block: cst.CSTNode, index: int, new: list[cst.BaseStatement]) -> None:
        """``new`` in place of one statement."""
        self.put(own, insert(self.node(own), block, index, new, removed=1))

    def begin(self, own: Cut, code: str) -> None:
        """In front of what the function does, unmarked."""
        self._add(own, code, at_end=False)

    def finish(self, own: Cut, code: str) -> None:
        self._add(own, code, at_end=True)

    def _add(self, own: Cut, code: str, *, at_end: bool) -> None:
        node = self.node(own)
        body = node.body
        if not isinstance(body, cst.IndentedBlock):
            body = cst.IndentedBlock(statements("pass", marked=False))
            node = node.with_changes(body=body)
        index = len(body.body) if at_end else 1 if body.body and is_documentation(body.body[0]) else 0
        if (
            at_end
            and index
            and isinstance(body.body[-1], cst.SimpleStatementLine)
            and isinstance(body.body[-1].body[-1], cst.Return)
        ):
            index -= 1
        torch = [] if "torch" not in code or _knows_torch(own) else statements("import torch", marked=False)
        self.put(own, insert(node, body, index, [*torch, *statements(code, marked=False)]))

    def behind(self, own: Cut, code: str) -> None:
        """A further function of the same class."""
        self.put(own, self.node(own))
        self.edited[id(own.function.node)][2].extend(statements(code, marked=False))

    def append(self, module: str, code: str) -> None:
        self.appended.setdefault(module, []).append(code)

    def texts(self) -> dict[str, str]:
        by_module: dict[str, list[Edit]] = {}
        for own, new, behind in self.edited.values():
            by_module.setdefault(own.function.module.name, []).append(Edit(own, (new, *behind)))
        found: dict[str, str] = {}
        for name in by_module.keys() | self.appended.keys():
            module = self.index.module(name)
            assert module is not None
            extra = "\n\n\n".join(self.appended.get(name, ()))
            if "torch" in extra and "torch" not in module.names:
                extra = "import torch\n\n\n" + extra
            found[name] = spliced(module.text, by_module.get(name, ()), appended=extra)
        return found


def _knows_torch(own: Cut) -> bool:
    return "torch" in own.function.module.names
