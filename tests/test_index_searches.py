"""What is searched and walked in a faster way gives what the plain way gives."""

from __future__ import annotations

import ast
import gc
import re
from pathlib import Path

import pytest
from executed import index_of

from rebindlint.collector import collector_at_rest
from rebindlint.index.bindings import own_nodes
from rebindlint.index.modules import at_line_starts, descend
from rebindlint.index.readers import Readers

_CODE = '''
"""Every kind of list that a syntax tree has beside plain values."""
import a.b as c, d
from . import e

class K(d.Base, metaclass=c):
    x: int = 1

    async def f(self, p, /, q=2, *r, s, t=3, **u):
        global g, h
        async with self as v, v:
            return {1: p, **q}, [not n for n in r if n], lambda w: w + 1, f"{s!r:>{t}} {u}"
        try:
            del u[0:1, ...], v.y
        except* ValueError as error:
            raise KeyError from error

    def f2(self):
        match self:
            case {"k": 1, **rest} | K(1, z=[_, *more]) as whole if whole:
                yield rest, more
            case None:
                nonlocal_ = (yield from self) if self else await_
'''


def test_every_node_but_contexts_is_met_once() -> None:
    tree = ast.parse(_CODE)
    found = descend(tree)
    assert len(found) == len(set(map(id, found)))
    assert set(found) == {node for node in ast.walk(tree) if not isinstance(node, ast.expr_context)}


def test_a_node_without_all_its_fields_is_walked_as_far_as_it_goes() -> None:
    made = ast.If(test=ast.Name("x"), body=[ast.Pass()], orelse=[])
    del made.orelse, made.test
    assert [type(node) for node in descend(made) if node is not made] == [ast.Pass]


def test_what_stands_in_nested_functions_and_classes_is_not_ones_own() -> None:
    outer = ast.parse("def f():\n    class K:\n        a = 1\n    b = lambda: c\n    def g():\n        d\n    e").body[
        0
    ]
    names = {node.id for node in own_nodes(outer) if isinstance(node, ast.Name)}
    assert names == {"b", "e"}
    assert {type(node) for node in own_nodes(outer)} >= {ast.ClassDef, ast.Lambda, ast.FunctionDef}


@pytest.mark.parametrize(
    "raw",
    [
        b"class A(B):\n  class C(D, E):\n    pass\n",
        b"# class A(not one\nclass B(C): pass\r\nxclass D(E):\n",
        b"class A(B,\n        class C(D)\n",
        b"class A(B): class C(D)\n\tclass  E [T] (F): x = 'class G(H)'",
        b"",
    ],
)
def test_a_search_from_a_literal_finds_the_same_lines(raw: bytes) -> None:
    pattern = re.compile(rb"^[ \t]*class[ \t]+(\w+)[ \t]*(?:\[[^\]]*\])?[ \t]*\(([^)]*)\)", re.M)
    found = at_line_starts(pattern, re.compile(rb"class[ \t]"), raw)
    assert [(m.span(), m.groups()) for m in found] == [(m.span(), m.groups()) for m in pattern.finditer(raw)]


def test_every_file_is_asked_the_nearest_ones_first(tmp_path: Path) -> None:
    names = ["p/a/x.py", "p/a/y.py", "p/a0.py", "p/b/z.py", "q.py"]
    index = index_of(tmp_path)
    index.bytes = dict.fromkeys(names, b"")
    order = list(Readers(index)._nearest_first("p/a/y.py"))
    assert order == ["p/a/y.py", "p/a/x.py", "p/a0.py", "p/b/z.py", "q.py"]
    assert list(Readers(index)._nearest_first("")) == names
    assert sorted(Readers(index)._nearest_first("p/missing.py")) == names


def test_the_collector_is_what_it_was_after_a_rest() -> None:
    before = gc.isenabled()
    with collector_at_rest():
        with collector_at_rest():
            assert not gc.isenabled()
        assert not gc.isenabled()
    assert gc.isenabled() is before
