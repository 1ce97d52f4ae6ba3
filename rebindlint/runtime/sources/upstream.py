"""Finding things in the tree that is looked at; releases move them about."""

from __future__ import annotations

import importlib
from typing import Any

from rebindlint.runtime.sources.scenario import Absent

__all__ = ["first_upstream", "upstream"]


def upstream(module: str, *names: str) -> Any:
    """A module of the tree, or the first of ``names`` that it has; releases move things about.

    Raises ImportError or AttributeError where the release has none.
    """
    found = importlib.import_module(module)
    if not names:
        return found
    for name in names:
        if hasattr(found, name):
            return getattr(found, name)
    raise AttributeError(f"{module} has no {' or '.join(names)}")


def first_upstream(*places: str) -> Any:
    """The first ``module:name`` that the tree has. Raises Absent when it has none of them."""
    for place in places:
        module, _, name = place.partition(":")
        try:
            return upstream(module, name)
        except ModuleNotFoundError as error:
            if error.name is None or error.name.partition(".")[0] != "vllm":
                raise  # the module is there, and what it needs is not
        except AttributeError:
            continue
    raise Absent(f"it has no {places[0]}")
