"""The labels: one JSON object a line, so that a changed label is a changed line."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, fields
from pathlib import Path

from rebindlint.model import RebindlintError

__all__ = ["FOLDER", "OF_KIND", "Label", "labelled_trees", "load", "store"]

FOLDER = Path(__file__).parent / "labels"
OF_KIND = {
    "finding": ("hazard", "other-protocol", "false-alarm", "cannot-tell", ""),
    "unflagged": ("safe", "missed", "other-protocol", "cannot-tell", ""),
}


@dataclass(frozen=True, slots=True)
class Label:
    """A place of a tree and what is true of it; an empty ``label`` is still to be given.

    ``code`` and ``severity`` are those of the finding when the sample was drawn, empty for a write that was not flagged.
    """

    tree: str
    kind: str
    path: str
    line: int
    attribute: str
    hook: str
    code: str = ""
    severity: str = ""
    label: str = ""
    reason: str = ""

    @property
    def place(self) -> tuple[str, int, str]:
        return self.path, self.line, self.attribute


def labelled_trees(folder: Path | None = None) -> tuple[str, ...]:
    return tuple(sorted(path.stem for path in (folder or FOLDER).glob("*.json")))


def load(tree: str, folder: Path | None = None) -> list[Label]:
    """The labels of a tree, none when it has no file. Raises RebindlintError when the file is not as README.md says."""
    path = (folder or FOLDER) / f"{tree}.json"
    if not path.is_file():
        return []
    try:
        entries = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise RebindlintError(f"{path} is not JSON: {error}") from error
    if not isinstance(entries, list):
        raise RebindlintError(f"{path} holds no list")
    labels = [_checked(entry, f"{path.name}, entry {number}", tree) for number, entry in enumerate(entries, 1)]
    seen: set[tuple[object, ...]] = set()
    for number, label in enumerate(labels, 1):
        key = (label.kind, *label.place, label.code)
        if key in seen:
            raise RebindlintError(
                f"{path.name}, entry {number}: {label.path}:{label.line} {label.attribute} is there twice"
            )
        seen.add(key)
    return labels


def _checked(entry: object, where: str, tree: str) -> Label:
    if not isinstance(entry, dict):
        raise RebindlintError(f"{where}: no object")
    types = {field.name: int if field.name == "line" else str for field in fields(Label)}
    for name in entry.keys() - types.keys():
        raise RebindlintError(f"{where}: no key `{name}` is known")
    for name, kind in types.items():
        if not isinstance(entry.get(name, ""), kind) and (name in entry or kind is int):
            raise RebindlintError(f"{where}: `{name}` is no {kind.__name__}")
    for name in ("tree", "kind", "path", "attribute", "hook"):
        if name not in entry:
            raise RebindlintError(f"{where}: no `{name}`")
    label = Label(**entry)
    if label.tree != tree:
        raise RebindlintError(f"{where}: the tree is {label.tree}")
    if label.label not in OF_KIND.get(label.kind, ()):
        raise RebindlintError(f"{where}: `{label.label}` is no label of kind `{label.kind}`")
    if label.label and not label.reason:
        raise RebindlintError(f"{where}: no reason")
    return label


def store(tree: str, labels: Iterable[Label], folder: Path | None = None) -> Path:
    """Writes the labels in the order of the places."""
    ordered = sorted(labels, key=lambda label: (label.kind, *label.place, label.code))
    lines = ",\n".join(json.dumps(asdict(label), ensure_ascii=False) for label in ordered)
    path = (folder or FOLDER) / f"{tree}.json"
    path.write_text(f"[\n{lines}\n]\n", encoding="utf-8")
    return path
