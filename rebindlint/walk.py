"""The walk over folders: finds Python files, leaves out what is ignored, and gives each file its module name."""

from __future__ import annotations

import os

from rebindlint.config import Config
from rebindlint.ignored import Excluded, GitIgnore, is_ignored, read_gitignore

__all__ = ["Walk", "gitignores_above"]

_SUFFIXES = (".py", ".pyi")
_PACKAGE = ("__init__.py", "__init__.pyi")
_STOPS = frozenset({"site-packages", "dist-packages"})  # import roots that no package contains


class Walk:
    """``files`` maps absolute paths to module names; a folder is listed once however often it is asked for.

    Module names count from the top-most folder that is a package; a folder without ``__init__.py`` inside a package is a
    part of it. Outside packages they count from the folder where the walk began, or from a ``src`` folder.
    """

    def __init__(self, config: Config, excluded: Excluded) -> None:
        self.files: dict[str, str] = {}
        self.failures: list[tuple[str, str]] = []
        self._config = config
        self._excluded = excluded
        self._sources = {os.path.abspath(config.root / folder) for folder in config.src}
        self._listed: dict[str, list[str]] = {}  # folder -> files found at or below it
        self._packages: dict[str, str] = {}  # first name of a module -> the folder it belongs to
        self._modules: set[str] = set()

    def below(self, start: str) -> list[str]:
        """Every Python file at or below ``start`` that is not left out, as absolute paths."""
        top = package_root(start, self._stop_for(start))
        if top is not None:
            self._package(top)
        elif start not in self._listed:
            self._list(start, (), False, self._gitignores(start))
        if start not in self._listed:  # an ignored folder inside the package, but named by the user
            self._list(
                start,
                tuple(os.path.relpath(start, os.path.dirname(top or start)).split(os.sep)),
                True,
                self._gitignores(start),
            )
        return self._listed[start]

    def file(self, path: str, project: str | None) -> None:
        """One file that the user named, with the package around it; outside packages, with the folder that it lies in.

        Where that is no project either, as in a home folder, only with the modules and packages beside it: what it can import.
        """
        folder = os.path.dirname(path)
        top = package_root(folder, project)
        if top is not None:
            self._package(top)
        elif (
            folder not in self._listed and folder != project and os.path.isdir(folder)
        ):  # an editor may not have made it
            if project is None:
                self._beside(folder)
            else:
                self._list(folder, (), False, self._gitignores(folder))
        if path not in self.files:
            prefix = os.path.relpath(folder, os.path.dirname(top)).split(os.sep) if top else []
            self._add(path, tuple(prefix), os.path.basename(path))

    def _beside(self, folder: str) -> None:
        gitignores = self._gitignores(folder)
        try:
            with os.scandir(folder) as entries:
                listing = sorted(entries, key=lambda entry: entry.name)
        except OSError as error:
            self.failures.append((folder, error.strerror or type(error).__name__))
            return
        for entry in listing:
            is_folder = entry.is_dir(follow_symlinks=False)
            if self._is_left_out(entry, gitignores, is_folder=is_folder):
                continue
            if is_folder and any(os.path.isfile(os.path.join(entry.path, name)) for name in _PACKAGE):
                self._package(entry.path)
            elif not is_folder and entry.name.endswith(_SUFFIXES) and os.path.isfile(entry.path):
                self._add(entry.path, (), entry.name)

    def _package(self, top: str) -> None:
        if top not in self._listed:
            self._list(top, self._top_name(top), True, self._gitignores(top))

    def _top_name(self, top: str) -> tuple[str, ...]:
        """The package's name; two packages of one name (as in folders of examples) are told apart by their folders."""
        parts = top.strip(os.sep).split(os.sep)
        for count in range(1, len(parts) + 1):
            name = ".".join(parts[-count:])
            if self._packages.setdefault(name, top) == top:
                return tuple(parts[-count:])
        return tuple(parts)

    def _list(
        self, folder: str, prefix: tuple[str, ...], in_package: bool, gitignores: tuple[GitIgnore, ...]
    ) -> list[str]:
        found = self._listed[folder] = []
        try:
            with os.scandir(folder) as entries:
                listing = sorted(entries, key=lambda entry: entry.name)
        except OSError as error:
            self.failures.append((folder, error.strerror or type(error).__name__))
            return found
        if self._config.respect_gitignore and any(entry.name == ".gitignore" for entry in listing):
            own = read_gitignore(folder)
            gitignores = (*gitignores, own) if own and all(g.folder != own.folder for g in gitignores) else gitignores
        if not in_package and any(entry.name in _PACKAGE for entry in listing):
            prefix, in_package = self._top_name(folder), True
        elif not in_package and folder in self._sources:
            prefix = ()
        for entry in listing:
            if entry.is_dir(follow_symlinks=False):
                if self._is_left_out(entry, gitignores, is_folder=True):
                    continue
                inner = self._listed.get(entry.path)
                found += (
                    self._list(entry.path, (*prefix, entry.name), in_package, gitignores) if inner is None else inner
                )
            elif (
                entry.name.endswith(_SUFFIXES)
                and not self._is_left_out(entry, gitignores, is_folder=False)
                and os.path.isfile(entry.path)  # unlike the entry's own, it takes a loop of links for no file
            ):
                self._add(entry.path, prefix, entry.name)
                found.append(entry.path)
        return found

    def _add(self, path: str, prefix: tuple[str, ...], name: str) -> None:
        if path in self.files:
            return
        stem = os.path.splitext(name)[0]
        module = ".".join(prefix if stem == "__init__" and prefix else (*prefix, stem))
        if module in self._modules:  # two scripts of one name, or a stub beside its module
            module = path.strip(os.sep).replace(os.sep, ".")
        self._modules.add(module)
        self.files[path] = module

    def _is_left_out(self, entry: os.DirEntry[str], gitignores: tuple[GitIgnore, ...], *, is_folder: bool) -> bool:
        if self._excluded(entry.path, entry.name, is_folder=is_folder):
            return True
        return bool(gitignores) and is_ignored(gitignores, entry.path, is_folder=is_folder)

    def _gitignores(self, start: str) -> tuple[GitIgnore, ...]:
        """Those above ``start``, save the ones that would ignore ``start`` itself: the user asked for it."""
        if not self._config.respect_gitignore:
            return ()
        return tuple(g for g in gitignores_above(start, self._config) if not _ignores_at_or_above(g, start))

    def _stop_for(self, start: str) -> str | None:
        root = str(self._config.root)
        return root if start == root or start.startswith(root.rstrip(os.sep) + os.sep) else None


def package_root(folder: str, stop: str | None) -> str | None:
    """The top-most package at or above ``folder``, looking no higher than ``stop`` (nor above an installation's folder)."""
    top = None
    while True:
        if any(os.path.isfile(os.path.join(folder, name)) for name in _PACKAGE):
            top = folder
        parent = os.path.dirname(folder)
        if folder == stop or parent == folder or os.path.basename(folder) in _STOPS:
            return top
        folder = parent


def gitignores_above(path: str, config: Config) -> tuple[GitIgnore, ...]:
    """The ``.gitignore`` files above ``path``, outermost first: from the git root, else from the project's root.

    The repository's own ``.git/info/exclude`` comes before them.
    """
    chain: list[str] = []
    folder = path
    while not os.path.exists(os.path.join(folder, ".git")):
        parent = os.path.dirname(folder)
        if parent == folder:
            top = str(config.root)
            chain = [step for step in chain if step == top or step.startswith(top.rstrip(os.sep) + os.sep)]
            break
        chain.append(parent)
        folder = parent
    exclude = read_gitignore(folder, os.path.join(folder, ".git", "info", "exclude"))
    found = (exclude, *(read_gitignore(step) for step in reversed(chain)))
    return tuple(gitignore for gitignore in found if gitignore is not None)


def _ignores_at_or_above(gitignore: GitIgnore, path: str) -> bool:
    while path.startswith(gitignore.folder):
        if gitignore.verdict(path, is_folder=True):
            return True
        path = os.path.dirname(path)
    return False
