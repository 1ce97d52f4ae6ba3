"""Edits: which are applied together, which wait, which are refused; and where an import goes."""

from __future__ import annotations

import ast
from collections.abc import Callable

import pytest

from rebindlint.fix import Applied, apply_fixes
from rebindlint.imports import Imports, functions
from rebindlint.model import Applicability, Diagnostic, Edit, Fix, Place, Position, Severity
from rebindlint.texts import edited

HELPER = "vllm.model_executor.utils"


def place(row: int, start: int, end: int, *, filename: str = "a.py", last: int | None = None) -> Place:
    return Place(filename, Position(row, start), Position(last or row, end))


def diagnostic(*edits: Edit, code: str = "RB101", applicability: Applicability = Applicability.SAFE) -> Diagnostic:
    fix = Fix(applicability, "Copy", edits)
    return Diagnostic(code, "attribute-rebind", "bound anew", Severity.ERROR, edits[0].place, fix=fix)


def replacing(row: int, old: str, new: str, text: str, *, filename: str = "a.py") -> Edit:
    """The edit that puts ``new`` where ``old`` first stands in that row."""
    start = text.split("\n")[row - 1].index(old) + 1
    return Edit(place(row, start, start + len(old), filename=filename), new)


def reader(**texts: str) -> Callable[[str], str]:
    return lambda shown: texts[shown.removesuffix(".py")]


def apply(text: str, *diagnostics: Diagnostic) -> Applied:
    return apply_fixes(diagnostics, reader(a=text))


# ---- applying


def test_fixes_of_one_file_are_applied_together() -> None:
    text = "a = 1\nb = 2\nc = 3\n"
    one, two = diagnostic(replacing(1, "1", "10", text)), diagnostic(replacing(3, "3", "30", text))
    applied = apply(text, two, one)
    assert applied.texts == {"a.py": "a = 10\nb = 2\nc = 30\n"}
    assert (applied.fixed, applied.skipped, applied.refused) == ((one, two), (), ())


def test_of_two_that_overlap_the_second_waits_for_the_next_round() -> None:
    text = "value = old(1)\n"
    outer = diagnostic(Edit(place(1, 9, 15), "int(1)"))
    inner = diagnostic(Edit(place(1, 13, 14), "2"), code="RB103")
    applied = apply(text, inner, outer)
    assert applied.fixed == (outer,)
    assert applied.skipped == (inner,)
    after = applied.texts["a.py"]
    assert after == "value = int(1)\n"
    assert apply(after, inner).texts == {"a.py": "value = int(2)\n"}


def test_neighbouring_edits_do_not_overlap() -> None:
    text = "x = ab\n"
    left, right = diagnostic(Edit(place(1, 5, 6), "a")), diagnostic(Edit(place(1, 6, 7), "b"))
    assert apply(text, left, right).skipped == ()


def test_two_insertions_at_one_place_do_not_go_together() -> None:
    text = "x = 1\n"
    one = diagnostic(Edit(place(1, 1, 1), "import os\n"))
    two = diagnostic(Edit(place(1, 1, 1), "import re\n"))
    applied = apply(text, one, two)
    assert (len(applied.fixed), len(applied.skipped)) == (1, 1)


def test_the_same_import_of_two_fixes_is_added_once() -> None:
    text = "import torch\n\nx = 1\ny = 2\n"
    added = Edit(place(2, 1, 1), "from m import f\n")
    one = diagnostic(replacing(3, "1", "f(1)", text), added)
    two = diagnostic(replacing(4, "2", "f(2)", text), added)
    applied = apply(text, one, two)
    assert applied.texts == {"a.py": "import torch\nfrom m import f\n\nx = f(1)\ny = f(2)\n"}
    assert applied.fixed == (one, two)


def test_a_fix_is_applied_whole_or_not_at_all() -> None:
    text = "x = 1\ny = 2\n"
    first = diagnostic(replacing(1, "1", "10", text))
    both = diagnostic(replacing(2, "2", "20", text), replacing(1, "1", "11", text))
    applied = apply(text, first, both)
    assert applied.texts == {"a.py": "x = 10\ny = 2\n"}
    assert applied.skipped == (both,)


def test_findings_that_share_a_fix_are_fixed_by_it_together() -> None:
    text = "x = 1\n"
    one, two = diagnostic(replacing(1, "1", "10", text)), diagnostic(replacing(1, "1", "10", text), code="RB103")
    applied = apply(text, one, two)
    assert (applied.texts, applied.fixed) == ({"a.py": "x = 10\n"}, (one, two))


def test_a_fix_of_two_files_changes_both_or_none() -> None:
    read = reader(a="x = 1\n", b="y = 2\n")
    both = diagnostic(Edit(place(1, 5, 6), "10"), Edit(place(1, 5, 6, filename="b.py"), "20"))
    assert apply_fixes([both], read).texts == {"a.py": "x = 10\n", "b.py": "y = 20\n"}
    broken = diagnostic(Edit(place(1, 5, 6), "10"), Edit(place(1, 5, 6, filename="b.py"), "("))
    applied = apply_fixes([broken], read)
    assert (applied.texts, applied.refused) == ({}, (broken,))


@pytest.mark.parametrize(
    "content",
    ["(", "1 +", "1\n  y = 2", "helper(1)"],
    ids=["unbalanced", "unfinished", "indented", "unknown name"],
)
def test_a_fix_that_would_break_its_file_is_refused_and_the_others_are_kept(content: str) -> None:
    text = "x = 1\ny = 2\n"
    broken, sound = diagnostic(replacing(1, "1", content, text)), diagnostic(replacing(2, "2", "20", text))
    applied = apply(text, broken, sound)
    assert applied.texts == {"a.py": "x = 1\ny = 20\n"}
    assert (applied.fixed, applied.refused) == ((sound,), (broken,))


@pytest.mark.parametrize(
    "content", ["len('1')", "max(y, 1)", "(z := 1) + z"], ids=["builtin", "old name", "bound by it"]
)
def test_names_that_something_binds_are_no_reason_to_refuse(content: str) -> None:
    text = "y = 2\nx = 1\n"
    assert apply(text, diagnostic(replacing(2, "1", content, text))).refused == ()


def test_a_name_that_the_fix_imports_is_bound() -> None:
    text = "import torch\nx = 1\n"
    fix = diagnostic(replacing(2, "1", "helper(1)", text), Edit(place(2, 1, 1), "from m import helper\n"))
    assert apply(text, fix).texts == {"a.py": "import torch\nfrom m import helper\nx = helper(1)\n"}


def test_what_stands_around_an_edit_stays_byte_for_byte() -> None:
    text = "# caf\u00e9\r\nx = 1  # \u4e2d\r\ny = 2\r\n"
    applied = apply(text, diagnostic(replacing(2, "1", "10", text)))
    assert applied.texts == {"a.py": text.replace("x = 1 ", "x = 10 ")}


def test_an_edit_that_changes_nothing_is_no_new_text() -> None:
    text = "x = 1\n"
    assert apply(text, diagnostic(replacing(1, "1", "1", text))).texts == {}


# ---- where an import goes


def imported(text: str, *, wanted: str = HELPER, module: str = "vllm.layer", cyclic: bool = False) -> tuple[str, str]:
    """The name to call, and the text with the import."""
    tree = ast.parse(text)
    newline = "\r\n" if "\r\n" in text else "\n"
    lines = text.replace("\r\n", "\n").split("\n")
    imports = Imports(module, "a.py", False, tree, lines, newline, cyclic)
    inside = next(iter(functions(tree)), None)
    name = imports.local_name(wanted, "replace_parameter", inside)
    after = edited(text, imports.edits)
    ast.parse(after)
    return name, after


def test_an_import_of_one_line_is_extended_in_its_order() -> None:
    assert imported(f"from {HELPER} import maybe, set_weight_attrs\n") == (
        "replace_parameter",
        f"from {HELPER} import maybe, replace_parameter, set_weight_attrs\n",
    )
    assert imported(f"from {HELPER} import maybe\n")[1] == f"from {HELPER} import maybe, replace_parameter\n"


def test_a_parenthesised_import_gets_a_line() -> None:
    before = f"from {HELPER} import (\n    maybe,\n    set_weight_attrs,\n)\n"
    after = f"from {HELPER} import (\n    maybe,\n    replace_parameter,\n    set_weight_attrs,\n)\n"
    assert imported(before)[1] == after


@pytest.mark.parametrize("comma", [",", ""])
def test_a_parenthesised_import_gets_a_last_line(comma: str) -> None:
    before = f"from {HELPER} import (\n    first,\n    maybe{comma}\n)\n"
    assert imported(before)[1] == f"from {HELPER} import (\n    first,\n    maybe,\n    replace_parameter{comma}\n)\n"


def test_names_that_share_a_parenthesised_line_are_extended_there() -> None:
    before = f"from {HELPER} import (\n    maybe, set_weight_attrs\n)\n"
    assert imported(before)[1] == f"from {HELPER} import (\n    maybe, replace_parameter, set_weight_attrs\n)\n"


def test_a_new_import_stands_behind_its_sorted_neighbour_of_the_same_package() -> None:
    before = "import torch\n\nfrom vllm.config import C\nfrom vllm.platforms import P\n\nx = 1\n"
    after = before.replace("import C\n", f"import C\nfrom {HELPER} import replace_parameter\n")
    assert imported(before)[1] == after


def test_a_new_import_stands_before_a_neighbour_that_sorts_after_it() -> None:
    before = "import torch\n\nfrom vllm.platforms import P\n\nx = 1\n"
    after = before.replace("from vllm.platforms", f"from {HELPER} import replace_parameter\nfrom vllm.platforms")
    assert imported(before)[1] == after


def test_an_import_of_several_lines_is_not_cut_in_two() -> None:
    before = "from vllm.config import (\n    A,\n    B,\n)\n\nx = 1\n"
    assert imported(before)[1] == before.replace(")\n", f")\nfrom {HELPER} import replace_parameter\n")


def test_without_a_neighbour_it_starts_a_section_behind_the_last_import() -> None:
    before = '"""Doc."""\n\nimport os\nimport torch\n\nx = 1\n'
    after = before.replace("import torch\n", f"import torch\n\nfrom {HELPER} import replace_parameter\n")
    assert imported(before)[1] == after


def test_without_imports_it_stands_behind_the_docstring() -> None:
    before = '"""Doc.\n\nMore.\n"""\nx = 1\n'
    after = f'"""Doc.\n\nMore.\n"""\nfrom {HELPER} import replace_parameter\nx = 1\n'
    assert imported(before)[1] == after
    assert imported("x = 1\n")[1] == f"from {HELPER} import replace_parameter\nx = 1\n"
    assert imported('"""Doc."""')[1] == f'"""Doc."""\nfrom {HELPER} import replace_parameter\n'


def test_a_line_ends_as_the_others_do() -> None:
    assert imported("import torch\r\n\r\nx = 1\r\n")[1] == (
        f"import torch\r\n\r\nfrom {HELPER} import replace_parameter\r\n\r\nx = 1\r\n"
    )


def test_an_import_that_is_there_is_used_by_its_own_name() -> None:
    before = f"from {HELPER} import replace_parameter as put\n"
    assert imported(before) == ("put", before)
    relative = "from .model_executor.utils import replace_parameter\n"
    assert imported(relative) == ("replace_parameter", relative)


def test_the_helper_s_own_file_needs_no_import() -> None:
    before = "def replace_parameter(layer, name, new):\n    pass\n"
    assert imported(before, module=HELPER) == ("replace_parameter", before)


@pytest.mark.parametrize(
    "taken",
    ["from other import replace_parameter\n", "def replace_parameter(a):\n    pass\n", "replace_parameter = None\n"],
    ids=["imported", "defined", "assigned"],
)
def test_a_name_that_is_taken_is_imported_under_another(taken: str) -> None:
    name, after = imported(f"import torch\n{taken}")
    assert name == "_replace_parameter"
    assert f"from {HELPER} import replace_parameter as _replace_parameter\n" in after


def test_where_an_import_would_close_a_cycle_it_stands_in_the_function() -> None:
    before = 'import torch\n\n\ndef hook(self):\n    """Doc."""\n    # why\n    self.x = 1\n'
    after = before.replace("    # why", f"    from {HELPER} import replace_parameter\n    # why")
    assert imported(before, cyclic=True) == ("replace_parameter", after)
    bare = "def hook(self):\n\tself.x = 1\n"
    assert (
        imported(bare, cyclic=True)[1] == f"def hook(self):\n\tfrom {HELPER} import replace_parameter\n\tself.x = 1\n"
    )


def test_an_import_in_the_function_is_used_again() -> None:
    before = f"def hook(self):\n    from {HELPER} import replace_parameter\n\n    self.x = 1\n"
    assert imported(before, cyclic=True) == ("replace_parameter", before)


def test_two_fixes_of_a_file_ask_for_one_import() -> None:
    text = "import torch\n"
    imports = Imports("vllm.layer", "a.py", False, ast.parse(text), text.split("\n"), "\n", False)
    assert {imports.local_name(HELPER, "replace_parameter", None) for _ in range(2)} == {"replace_parameter"}
    assert len(imports.edits) == 1


def test_among_third_party_imports_a_third_party_helper_needs_no_section() -> None:
    before = "import torch\n\nx = 1\n"
    assert imported(before, module="plugin.layer")[1] == (
        f"import torch\nfrom {HELPER} import replace_parameter\n\nx = 1\n"
    )


def test_both_names_may_be_taken() -> None:
    name, text = imported("replace_parameter = _replace_parameter = None\n")
    assert name == "_replace_parameter_2"
    assert text.startswith(f"from {HELPER} import replace_parameter as _replace_parameter_2\n")


def test_an_import_that_a_local_name_hides_is_not_used() -> None:
    before = f"from {HELPER} import replace_parameter\n\n\ndef hook(layer):\n    from other import replace_parameter\n\n    layer()\n"
    name, text = imported(before)
    assert name == "_replace_parameter"
    assert "    replace_parameter,\n    replace_parameter as _replace_parameter,\n" in text


def test_constants_and_classes_come_before_functions() -> None:
    before = f"from {HELPER} import FLAG, Zebra, set_weight_attrs\n"
    assert imported(before)[1] == f"from {HELPER} import FLAG, Zebra, replace_parameter, set_weight_attrs\n"


def test_an_import_that_gets_too_long_is_spread_over_lines() -> None:
    before = f"from {HELPER} import get_packed_modules_mapping, set_weight_attrs\n"
    assert imported(before)[1] == (
        f"from {HELPER} import (\n    get_packed_modules_mapping,\n    replace_parameter,\n    set_weight_attrs,\n)\n"
    )


def test_a_long_import_with_a_comment_stays_on_its_line() -> None:
    before = f"from {HELPER} import get_packed_modules_mapping, set_weight_attrs  # noqa\n"
    assert imported(before)[1] == (
        f"from {HELPER} import get_packed_modules_mapping, replace_parameter, set_weight_attrs  # noqa\n"
    )


# ---- imports that nothing uses any more

FROM = "from torch.nn.parameter import Parameter"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (f"import torch\n{FROM}\n\nx = Parameter(1)\n", "import torch\n\nx = 1\n"),
        (f"import os\n\n{FROM}\n\nimport vllm\nx = Parameter(1)\n", "import os\n\nimport vllm\nx = 1\n"),
        (f"{FROM}\r\n\r\nx = Parameter(1)\r\n", "\r\nx = 1\r\n"),
        ("from torch.nn import Module, Parameter\nx = Parameter(1)\n", "from torch.nn import Module\nx = 1\n"),
        (
            "from torch.nn import Parameter, Module as M\nx = Parameter(1)\n",
            "from torch.nn import Module as M\nx = 1\n",
        ),
    ],
)
def test_an_import_from_torch_goes_with_its_last_use(before: str, after: str) -> None:
    row = before.split("\n").index(next(line for line in before.split("\n") if "x = " in line)) + 1
    applied = apply(before, diagnostic(replacing(row, "Parameter(1)", "1", before)))
    assert applied.texts == {"a.py": after}


@pytest.mark.parametrize(
    "kept",
    [
        f"{FROM}\ny = Parameter(2)",
        f'{FROM}\ny: "Parameter"',
        f'{FROM}\n__all__ = ["Parameter"]',
        f"{FROM}  # noqa: F401",
        "from torch.nn.parameter import (\n    Parameter,\n)",
        "from torch.nn.parameter import Parameter as P\ny = P(2)",
        "from vllm.parameter import Parameter",
        "from .torch import Parameter",
        "if True:\n    from torch.nn import Parameter",
    ],
)
def test_other_imports_stay(kept: str) -> None:
    before = f"{kept}\nx = Parameter(1)\n"
    row = before.count("\n")
    applied = apply(before, diagnostic(replacing(row, "Parameter(1)", "1", before)))
    assert applied.texts == {"a.py": f"{kept}\nx = 1\n"}


def test_what_was_not_used_before_is_not_our_business() -> None:
    before = f"{FROM}\nx = 1\n"
    assert apply(before, diagnostic(replacing(2, "1", "2", before))).texts == {"a.py": f"{FROM}\nx = 2\n"}


def test_a_package_may_hand_on_what_it_imports() -> None:
    before = f"{FROM}\nx = Parameter(1)\n"
    edit = replacing(2, "Parameter(1)", "1", before, filename="a/__init__.py")
    applied = apply_fixes([diagnostic(edit)], lambda _: before)
    assert applied.texts == {"a/__init__.py": f"{FROM}\nx = 1\n"}
