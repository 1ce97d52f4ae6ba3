"""The same fixes in files with other line ends, indents and encodings: what is not edited stays byte for byte."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from rebindlint.config import Config
from rebindlint.pipeline import Request, run

TREES = Path(__file__).parent / "fixtures" / "_trees"
SOURCE = '''\
# -*- coding: utf-8 -*-
"""Größen und Gewichte."""

import torch
from torch.nn import Parameter

from vllm.model_executor.utils import (
    set_weight_attrs,
)


class Method:
    unit = "µ"

    def process_weights_after_loading(self, layer: torch.nn.Module) -> None:
        doubled = layer.weight * 2  # größer
        layer.first = Parameter(
            doubled.float(),  # für den Kern
            requires_grad=False,
        )  # Ende
        self.table = doubled.to(torch.int64)

    def apply(self, layer: torch.nn.Module, x: torch.Tensor) -> torch.Tensor:
        return x * layer.first * self.table
'''
FIXED = '''\
# -*- coding: utf-8 -*-
"""Größen und Gewichte."""

import torch

from vllm.model_executor.utils import (
    replace_parameter,
    set_weight_attrs,
)


class Method:
    unit = "µ"

    def process_weights_after_loading(self, layer: torch.nn.Module) -> None:
        doubled = layer.weight * 2  # größer
        # für den Kern
        replace_parameter(layer, "first", doubled.float(), prefer_copy=True)  # Ende
        new_table = doubled.to(torch.int64)
        old_table = getattr(self, "table", None)
        if (
            old_table is not None
            and old_table.shape == new_table.shape
            and old_table.dtype == new_table.dtype
        ):
            old_table.copy_(new_table)
        else:
            self.table = new_table

    def apply(self, layer: torch.nn.Module, x: torch.Tensor) -> torch.Tensor:
        return x * layer.first * self.table
'''


def in_latin_1(text: str) -> bytes:
    return text.replace("utf-8", "latin-1").encode("latin-1")


def with_tabs(text: str) -> bytes:
    return re.sub(r"(?m)^( {4})+", lambda m: "\t" * (len(m.group()) // 4), text).encode()


def with_two_spaces(text: str) -> bytes:
    return re.sub(r"(?m)^( {4})+", lambda m: "  " * (len(m.group()) // 4), text).encode()


VARIANTS: dict[str, Callable[[str], bytes]] = {
    "LF": str.encode,
    "CRLF": lambda text: text.replace("\n", "\r\n").encode(),
    "CRLF and tabs": lambda text: with_tabs(text).replace(b"\n", b"\r\n"),
    "byte order mark": lambda text: b"\xef\xbb\xbf" + text.encode(),
    "byte order mark and CRLF": lambda text: b"\xef\xbb\xbf" + text.replace("\n", "\r\n").encode(),
    "Latin-1": in_latin_1,
    "Latin-1 and CRLF": lambda text: in_latin_1(text).replace(b"\n", b"\r\n"),
    "no newline at the end": lambda text: text.rstrip("\n").encode(),
    "form feed": lambda text: text.replace("\n\n\n", "\n\n\x0c\n").encode(),
    "trailing blanks": lambda text: text.replace("\n\n    def apply", " \t\n\n    def apply").encode(),
}


@pytest.mark.parametrize("name", VARIANTS)
def test_only_the_edits_differ(name: str, tmp_path: Path) -> None:
    check(tmp_path, VARIANTS[name](SOURCE), VARIANTS[name](FIXED))


@pytest.mark.parametrize("indented", [with_tabs, with_two_spaces])
def test_new_blocks_are_indented_as_the_file_is(indented: Callable[[str], bytes], tmp_path: Path) -> None:
    check(tmp_path, indented(SOURCE), indented(FIXED))


def check(folder: Path, before: bytes, after: bytes) -> None:
    shutil.copytree(TREES / "prefer_copy", folder, dirs_exist_ok=True)
    file = folder / "vllm" / "model_executor" / "layers" / "method.py"
    file.write_bytes(before)
    file.chmod(0o640)
    outcome = run(Request((".",), Config(root=folder, jobs=1), fix=True, cache=False, cwd=folder))
    assert len(outcome.fixed) == 2
    assert file.read_bytes().decode("latin-1") == after.decode("latin-1")
    assert file.stat().st_mode & 0o777 == 0o640
    compile(file.read_bytes(), "method.py", "exec")
    again = run(Request((".",), Config(root=folder, jobs=1), fix=True, cache=False, cwd=folder))
    assert again.changed == ()
