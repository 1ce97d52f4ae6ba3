"""What the tree's own replace helpers do, read from their source."""

from __future__ import annotations

import ast
import importlib.util
import re
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from rebindlint.index.classes import FunctionInfo
from rebindlint.index.modules import Module
from rebindlint.model import Dialect, HelperKind

if TYPE_CHECKING:
    from rebindlint.index.tree import Index

__all__ = ["HELPERS", "classify", "find_dialects", "outside_dialect"]

HELPERS = ("replace_parameter", "copy_or_rebind_param")
_DEFINITION = re.compile(rb"^def[ \t]+(replace_parameter|copy_or_rebind_param)\b", re.M)
_RANK = {HelperKind.COPIES_OR_MOVES: 0, HelperKind.COPIES: 1, HelperKind.PREFER_COPY: 1, HelperKind.REBINDS: 2}


@cache
def classify(info: FunctionInfo) -> Dialect:
    """The dialect of one helper: does it copy, when asked or by itself, or always rebind?"""
    node = info.node
    parameters = tuple(a.arg for a in node.args.posonlyargs + node.args.args + node.args.kwonlyargs)
    copies = any(
        isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute) and n.func.attr == "copy_" for n in ast.walk(node)
    )
    if "prefer_copy" in parameters:
        kind = HelperKind.PREFER_COPY
    elif info.name == "copy_or_rebind_param":
        kind = HelperKind.COPIES_OR_MOVES
    else:
        kind = HelperKind.COPIES if copies else HelperKind.REBINDS
    return Dialect(info.module.name, info.name, kind, parameters)


def find_dialects(index: Index) -> dict[str, Dialect]:
    """For each top package its best helper: a helper that copies before one that cannot, a shallow module before a deep one."""
    best: dict[str, tuple[tuple[int, int, str], Dialect]] = {}
    needles = [name.encode() for name in HELPERS]
    for module_name, source in sorted(index.sources.items()):
        raw = index.bytes.get(source.shown, b"")
        if not any(needle in raw for needle in needles) or not _DEFINITION.search(raw):
            continue
        module = index.module(module_name)
        for name in HELPERS if module is not None else ():
            found = index.resolve(module, name) if module is not None else None
            if not isinstance(found, FunctionInfo) or found.module is not module:
                continue
            dialect = classify(found)
            if len(dialect.parameters) < 3 or dialect.kind is None:
                continue
            rank = (_RANK[dialect.kind], module_name.count("."), module_name)
            top = module_name.split(".")[0]
            if top not in best or rank < best[top][0]:
                best[top] = (rank, dialect)
    return {top: dialect for top, (_, dialect) in best.items()}


def outside_dialect(target_version: str | None) -> Dialect:
    """The helper of the vllm that a tree imports and does not contain: of the named version, else of the installed one.

    Nothing is imported: the installed package is only read. Without either there is no helper to call.
    """
    module, function = "vllm.model_executor.utils", "replace_parameter"
    match = re.fullmatch(r"vllm\s*==\s*(\d+)\.(\d+).*", target_version or "")
    if match is not None:
        version = (int(match.group(1)), int(match.group(2)))
        # between the releases that were read the oldest form is assumed: what is built from it is right in all
        kind = (
            HelperKind.PREFER_COPY
            if (0, 24) <= version <= (0, 29)
            else HelperKind.COPIES
            if version >= (0, 33)
            else HelperKind.REBINDS
        )
        return Dialect(module, function, kind, ("layer", "param_name", "new_data"))
    text = _installed_source(module)
    try:
        tree = ast.parse(text)
    except SyntaxError:
        return Dialect()
    node = next((n for n in tree.body if isinstance(n, ast.FunctionDef) and n.name == function), None)
    if node is None:
        return Dialect()
    return classify(FunctionInfo(node, Module(module, module, False, tree, text)))


def _installed_source(module: str) -> str:
    try:
        spec = importlib.util.find_spec(module.split(".")[0])
    except (ImportError, ValueError):
        return ""
    for folder in (spec.submodule_search_locations or ()) if spec is not None else ():
        path = Path(folder).joinpath(*module.split(".")[1:]).with_suffix(".py")
        try:
            return path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError):
            continue
    return ""
