"""Elements of containers: of which class they are, by the ways in which constructors fill containers."""

from __future__ import annotations

import textwrap

import pytest
from executed import facts

SOURCE = """
import itertools
import torch
from torch import nn

class Block(nn.Module):
    def __init__(self, i=0):
        super().__init__()
        self.kv = nn.Linear(4, 4)

    def fuse(self):
        self.derived = self.kv.weight.float() * 2

    def forward(self, x):
        return x * self.derived

class Other(nn.Module):
    def fuse(self):
        self.flag = True

def build(count, make):
    return nn.ModuleList([make(i) for i in range(count)])

def built(count) -> list[Block]:
    return outside(count)

def wrapped(block):
    return block

class Model(nn.Module):
    def __init__(self, count, given: list[Block], cls=Block, kind: type[Block] = None):
        super().__init__()
{init}

    def make(self):
        return Block(1)

    def declared(self) -> Block:
        return outside(self)

    def post_load_weights(self):
        {hook}

    def forward(self, x):
        return x
"""
LOOP = "for block in self.blocks: block.fuse()"


def bound(init: str, hook: str = LOOP) -> set[str]:
    text = SOURCE.format(init=textwrap.indent(init, " " * 8), hook=hook)
    return {str(fact.cell.name) for fact in facts(a=text)}


@pytest.mark.parametrize(
    "init",
    [
        "self.blocks = [Block()]",
        "self.blocks = [Block() for _ in range(count)]",
        "self.blocks = nn.ModuleList([Block(i) for i in range(count)])",
        "self.blocks = nn.ModuleList(Block(i) for i in range(count))",
        "self.blocks = nn.Sequential(Block(), Block())",
        "self.blocks = nn.Sequential(*[Block() for _ in range(count)])",
        "self.blocks = nn.ModuleList([self.make() for _ in range(count)])",
        "self.blocks = nn.ModuleList([self.declared() for _ in range(count)])",
        "self.blocks = nn.ModuleList([cls() for _ in range(count)])",
        "self.blocks = nn.ModuleList([kind() for _ in range(count)])",
        "self.blocks = build(count, lambda i: Block(i))",
        "self.start, self.blocks = outside(count, lambda i: Block(i))",
        "def one(i):\n    return Block(i)\nself.blocks = outside(count, one)",
        "self.blocks = built(count)",
        "self.blocks = given",
        "self.blocks: list[Block] = outside(count)",
        "self.blocks = []\nfor i in range(count):\n    self.blocks.append(Block(i))",
        "blocks = []\nfor i in range(count):\n    block = Block(i)\n    blocks.append(block)\nself.blocks = nn.ModuleList(blocks)",
        "self.blocks = nn.ModuleList()\nself.blocks.extend([Block(i) for i in range(count)])",
        "self.blocks = nn.Sequential()\nself.blocks.add_module('0', Block())",
        "self.blocks = [Other(), Block()]",
        "self.blocks = [Block() if i else Other() for i in range(count)]",
        "local = Block if count else Other\nself.blocks = [local() for _ in range(count)]",
    ],
)
def test_the_class_of_elements_is_known(init: str) -> None:
    assert bound(init) == {"derived"}


@pytest.mark.parametrize(
    "hook",
    [
        "for block in self.blocks.values(): block.fuse()",
        "for name, block in self.blocks.items(): block.fuse()",
        "self.blocks['first'].fuse()",
        "list(self.blocks.values())[0].fuse()",
    ],
)
@pytest.mark.parametrize(
    "init",
    [
        "self.blocks = nn.ModuleDict({'first': Block()})",
        "self.blocks = {str(i): Block() for i in range(count)}",
        "self.blocks = {}\nself.blocks[str(count)] = Block()",
    ],
)
def test_the_class_of_what_a_dictionary_holds_is_known(init: str, hook: str) -> None:
    assert bound(init, hook) == {"derived"}


@pytest.mark.parametrize(
    "hook",
    [
        "for i, block in enumerate(self.blocks): block.fuse()",
        "for a, b in zip(self.blocks, self.blocks): b.fuse()",
        "for block in reversed(self.blocks): block.fuse()",
        "for block in list(self.blocks): block.fuse()",
        "for block in itertools.islice(self.blocks, 2): block.fuse()",
        "self.blocks[0].fuse()",
        "[block.fuse() for block in self.blocks]",
    ],
)
def test_however_the_elements_are_visited(hook: str) -> None:
    assert bound("self.blocks = nn.ModuleList([Block() for _ in range(count)])", hook) == {"derived"}


@pytest.mark.parametrize(
    "init",
    [
        "self.blocks = [Other() for _ in range(count)]",
        "self.blocks = outside(count)",
        "self.blocks = nn.ParameterList([nn.Parameter(torch.empty(4)) for _ in range(count)])",
        "self.blocks = [wrapped(count)]",
    ],
)
def test_nothing_is_guessed(init: str) -> None:
    assert bound(init) == set()
