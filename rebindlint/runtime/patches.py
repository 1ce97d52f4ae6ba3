"""Replacing an attribute for a while."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

__all__ = ["patched"]


@contextlib.contextmanager
def patched(target: Any, name: str, wrap: Callable[[Any], Any], *, inherited: bool = False) -> Iterator[None]:
    """Replace ``target.name`` by ``wrap(original)``; afterwards it is the same object in the same place, or absent
    again. What cannot be replaced stays as it is.
    """
    own = vars(target).get(name)
    original = own if own is not None or not inherited else _inherited(target, name)
    try:
        setattr(target, name, wrap(original))
    except (AttributeError, TypeError):  # a metaclass that forbids it: this class goes unwatched
        yield
        return
    try:
        yield
    finally:
        if own is not None:
            setattr(target, name, own)
        else:
            delattr(target, name)


def _inherited(cls: type, name: str) -> Any:
    """The attribute as its class holds it: unbound, descriptors unread."""
    return next(vars(parent)[name] for parent in cls.__mro__ if name in vars(parent))
