"""Names across modules: what an import, an alias or a re-export leads to."""

from __future__ import annotations

from pathlib import Path

import pytest
from executed import index_of

from rebindlint.index import Index
from rebindlint.index.classes import ClassInfo, FunctionInfo
from rebindlint.index.modules import Module
from rebindlint.index.tree import External

HOME = "def target():\n    pass\n\nclass Thing:\n    pass\n"


def meaning(index: Index, module: str, name: str) -> str:
    """Where a top-level name of a module leads: ``home:qualified``, a module's name, or ``external:dotted``."""
    home = index.module(module)
    assert home is not None
    found = index.resolve(home, name)
    if isinstance(found, FunctionInfo | ClassInfo):
        return f"{found.module.name}:{found.qualified if isinstance(found, FunctionInfo) else found.name}"
    if isinstance(found, Module):
        return found.name
    if isinstance(found, External):
        return f"external:{found}"
    return "nothing" if found is None else "assigned"


@pytest.mark.parametrize(
    ("statement", "name", "expected"),
    [
        ("from pkg.home import target", "target", "pkg.home:target"),
        ("from .home import target", "target", "pkg.home:target"),
        ("from . import home", "home", "pkg.home"),
        ("from .home import target as other", "other", "pkg.home:target"),
        ("import pkg.home as h", "h", "pkg.home"),
        ("import pkg.home", "pkg", "pkg"),
        ("from .sub.deep import up", "up", "pkg.home:target"),
        ("from .sub import exported", "exported", "pkg.home:target"),
        ("from .sub import Renamed", "Renamed", "pkg.home:Thing"),
        ("from .stars import *", "target", "pkg.home:target"),
        ("from .spaced.inner import far", "far", "pkg.home:target"),
        ("if True:\n    from .home import target\nelse:\n    target = None", "target", "pkg.home:target"),
        ("try:\n    from .home import target\nexcept ImportError:\n    target = None", "target", "pkg.home:target"),
        ("try:\n    import absent\nexcept ImportError:\n    from .home import target", "target", "pkg.home:target"),
        ("import torch.nn as nn", "nn", "external:torch.nn"),
        ("from torch import empty", "empty", "external:torch.empty"),
        ("from .home import missing", "missing", "external:pkg.home.missing"),
        ("limit = 3", "limit", "assigned"),
        ("pass", "undefined", "nothing"),
    ],
)
def test_a_name_is_followed_to_its_definition(tmp_path: Path, statement: str, name: str, expected: str) -> None:
    index = index_of(
        tmp_path,
        **{
            "pkg/__init__": "",
            "pkg/home": HOME,
            "pkg/user": statement,
            "pkg/stars": "from .home import *",
            "pkg/sub/__init__": "from ..home import target as exported, Thing as Renamed",
            "pkg/sub/deep": "from ..home import target as up",
            "pkg/spaced/inner": "from ..home import target as far",
        },
    )
    assert meaning(index, "pkg.user", name) == expected


def test_a_folder_without_init_inside_a_package_counts_from_the_package(tmp_path: Path) -> None:
    index = index_of(
        tmp_path, **{"pkg/__init__": "", "pkg/models/x/layer": "from ...home import target", "pkg/home": HOME}
    )
    assert meaning(index, "pkg.models.x.layer", "target") == "pkg.home:target"


def test_imports_in_a_circle_end(tmp_path: Path) -> None:
    index = index_of(tmp_path, a="from b import x\nfrom b import *", b="from a import x\nfrom a import *")
    assert meaning(index, "a", "x") == "external:b.x"
    assert meaning(index, "a", "y") == "nothing"


def test_nothing_is_parsed_before_it_is_asked_for(tmp_path: Path) -> None:
    index = index_of(tmp_path, broken="def (", fine="x = 1")
    assert index.failures == {}
    assert index.module("fine") is not None
    assert index.failures == {}


@pytest.mark.parametrize(
    ("text", "row", "reason"),
    [
        ("x = 1\ndef (:\n", 2, "invalid syntax"),
        ("x = '\n", 1, "unterminated string"),
        ("# coding: no-such-codec\n", 1, "cannot be decoded"),
        ("x = " + "(" * 250 + "1" + ")" * 250, 1, "parenthes"),
    ],
)
def test_a_file_that_cannot_be_parsed_is_a_failure(tmp_path: Path, text: str, row: int, reason: str) -> None:
    index = index_of(tmp_path, broken=text)
    assert index.module("broken") is None
    found_row, _, message = index.failures["broken.py"]
    assert found_row == row
    assert reason in message


@pytest.mark.parametrize(
    "text",
    ["x = " + " + ".join(["1"] * 5_000), "x = " + "-" * 20_000 + "1", "x" + ".a" * 30_000, "x = " + "f(" * 30_000],
    ids=["sum", "signs", "attributes", "calls"],
)
def test_generated_expressions_do_not_exhaust_the_stack(tmp_path: Path, text: str) -> None:
    """Refused with a reason, or parsed: both are fine, a crash is not."""
    index = index_of(tmp_path, deep=text, fine="def target():\n    pass")
    assert (index.module("deep") is None) == ("deep.py" in index.failures)
    assert meaning(index, "fine", "target") == "fine:target"


@pytest.mark.parametrize(
    ("importer", "imported", "expected"),
    [
        ("low", "top", True),  # top imports low already
        ("low", "middle", True),
        ("top", "low", False),
        ("top", "alone", False),
        ("alone", "top", False),
        ("ring_a", "ring_b", False),  # they reach each other already: nothing new
        ("lazy_target", "lazy", False),  # the import inside a function closes no cycle at import time
    ],
)
def test_whether_an_import_would_close_a_new_cycle(
    tmp_path: Path, importer: str, imported: str, expected: bool
) -> None:
    index = index_of(
        tmp_path,
        top="import middle",
        middle="from low import (\n    x,\n)",
        low="x = 1",
        alone="y = 1",
        ring_a="import ring_b",
        ring_b="import ring_a",
        lazy="def f():\n    import lazy_target",
        lazy_target="z = 1",
    )
    assert index.creates_cycle(importer, imported) is expected


def test_a_cycle_through_a_package_is_seen(tmp_path: Path) -> None:
    index = index_of(
        tmp_path, **{"pkg/__init__": "from . import layer", "pkg/layer": "from . import tool", "pkg/tool": ""}
    )
    assert index.creates_cycle("pkg.tool", "pkg.layer")
    assert not index.creates_cycle("pkg.layer", "pkg.tool")
