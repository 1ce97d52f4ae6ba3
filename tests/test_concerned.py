"""What is told about one file costs the hooks that may come to it, and says what all hooks together would say."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from rebindlint import concerned
from rebindlint.audit import audit
from rebindlint.cli import main
from rebindlint.concerned import functions_at, hooks_concerned
from rebindlint.config import Config
from rebindlint.execution.run import Executed, Watch, execute_hook
from rebindlint.index import Hook, Index, build_index, find_hooks
from rebindlint.model import Protocol
from rebindlint.pipeline import Request, find_files

FILES = {
    "pkg/__init__.py": "",
    "pkg/packing.py": """\
def pack(layer, name, value):
    setattr(layer, name, value.clone())


class Packer:
    def __init__(self, layer):
        layer.made = layer.weight.t().contiguous()

    def run(self, layer):
        layer.packed = layer.weight.t().contiguous()

    def shuffle_for_kernel(self, layer):
        layer.shuffled = layer.weight.t().contiguous()
""",
    "pkg/layers.py": """\
import torch
from torch import nn
from pkg.packing import pack


class Base(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(4, 4))

    def process_weights_after_loading(self, dtype):
        self.prepare()

    def prepare(self):
        pack(self, "first", self.weight.t())

    def forward(self, x):
        return x @ self.first
""",
    "pkg/derived.py": """\
from pkg.layers import Base


class Derived(Base):
    def process_weights_after_loading(self, dtype):
        super().process_weights_after_loading(dtype)

    def prepare(self):
        from pkg.packing import Packer

        Packer(self)

    def forward(self, x):
        return x @ self.made
""",
    "pkg/method.py": """\
from pkg.packing import Packer


class Method:
    def __init__(self, packer: Packer):
        self.packer = packer

    def process_weights_after_loading(self, layer):
        self.packer.shuffle_for_kernel(layer)

    def apply(self, layer, x):
        return x @ layer.shuffled
""",
    "pkg/generic.py": """\
from pkg.registry import TABLE


class Generic:
    def process_weights_after_loading(self, layer):
        TABLE["packer"](layer).run(layer)

    def apply(self, layer, x):
        return x @ layer.packed
""",
    "pkg/registry.py": "import pkg.packing\n\nTABLE = {'packer': pkg.packing.Packer}\n"
    + "".join(f"\n\nclass Other{n}:\n    def run(self):\n        pass\n" for n in range(4)),
    "pkg/alone.py": """\
class Alone:
    def process_weights_after_loading(self, layer):
        layer.alone = layer.weight.t().contiguous()

    def apply(self, layer, x):
        return x @ layer.alone
""",
}


class _Main:
    name = "rebindlint"

    def main(self, args: list[str], prog_name: str, **extra: object) -> None:
        main(args)


def run(*arguments: str) -> Result:
    return CliRunner().invoke(_Main(), list(arguments))  # type: ignore[arg-type]  # main is called like a command


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("FORCE_COLOR", raising=False)
    (tmp_path / "pyproject.toml").write_text("[tool.rebindlint]\njobs = 1\n")
    (tmp_path / "pkg").mkdir()
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    return tmp_path


@pytest.fixture
def executed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the hooks that are executed for a part of the project, in their order."""
    names: list[str] = []

    def noting(index: Index, hook: Hook, protocols: Sequence[Protocol], watch: Watch | None = None) -> Executed:
        names.append(hook.name.partition(".")[0])
        return execute_hook(index, hook, tuple(protocols), watch)

    monkeypatch.setattr(concerned, "execute_hook", noting)
    return names


def row(name: str, text: str) -> int:
    return next(number for number, line in enumerate(FILES[name].splitlines(), 1) if text in line)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("setattr(", {"Base"}),  # through a method of its own and an import
        ("layer.made", {"Derived"}),  # through what it overrides, an import inside a function, and a constructor
        ("layer.shuffled", {"Method"}),  # through an attribute whose name few functions have
        ("layer.packed", set()),  # a name that many have says nothing
    ],
)
def test_hooks_are_found_by_what_they_name(project: Path, text: str, wanted: set[str]) -> None:
    index = build_index(find_files(Request(("pkg",), Config(root=project))).sources, Config(root=project))
    hooks = find_hooks(index)
    functions = functions_at(index, "pkg/packing.py", row("pkg/packing.py", text))
    found = {hooks[number].name.partition(".")[0] for number in hooks_concerned(index, hooks, functions)}
    assert wanted <= found
    assert "Alone" not in found
    assert bool(wanted) or not found


def test_an_explanation_executes_the_hooks_that_may_come_there(project: Path, executed: list[str]) -> None:
    line = row("pkg/packing.py", "layer.made")
    explained = run("explain", "RB101", f"pkg/packing.py:{line}")
    assert explained.exit_code == 0, explained.stderr
    assert "Derived" in executed
    assert not {"Alone", "Generic", "Method"} & set(executed)
    executed.clear()
    assert run("check", "pkg").exit_code == 1  # leaves its result in the cache
    assert run("explain", "RB101", f"pkg/packing.py:{line}").stdout == explained.stdout
    assert executed == []


@pytest.mark.parametrize("text", ["setattr(", "layer.made", "layer.shuffled", "layer.packed"])
def test_an_explanation_says_what_a_check_says(project: Path, text: str) -> None:
    line = row("pkg/packing.py", text)
    found = json.loads(run("check", "pkg", "--no-cache", "--output-format", "json").stdout)
    (checked,) = [f for f in found if f["filename"] == "pkg/packing.py" and f["location"]["row"] == line]
    place = f"pkg/packing.py:{line}"
    (told,) = json.loads(run("explain", checked["code"], place, "--no-cache", "--output-format", "json").stdout)
    assert told.pop("explanation")["silenced"] is None
    assert told == checked


@pytest.mark.parametrize("name", ["pkg/layers.py", "pkg/derived.py", "pkg/method.py", "pkg/generic.py", "pkg/alone.py"])
def test_the_table_of_a_file_is_its_part_of_the_whole_table(project: Path, name: str, executed: list[str]) -> None:
    config = Config(root=project, jobs=1)
    whole = audit(find_files(Request(("pkg",), config)), config)
    assert executed == []
    part = audit(find_files(Request((name,), config)), config)
    assert part.hooks == tuple(hook for hook in whole.hooks if hook.place.filename == name)
    assert len(part.hooks) == 1
    assert "Alone" not in executed or name == "pkg/alone.py"
