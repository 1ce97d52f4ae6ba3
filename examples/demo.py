"""Lint a released vLLM, fix a copy of it, and prove a fix on real tensors. Run it with `make demo`.

Usage: demo.py [--offline]

The release's Python files are downloaded once into $REBINDLINT_CORPUS (default: rebindlint-corpus in the user's cache folder).
Without a network, or with --offline, the tiny engine beside this file is linted instead. Nothing but the cache is written to.
Exit status 0 when every part ran, 2 otherwise.
"""

from __future__ import annotations

import difflib
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import click

EXAMPLES = Path(__file__).resolve().parent
RELEASE = "vllm-0.25.1"


@dataclass(frozen=True, slots=True)
class Tree:
    """``folder`` holds the package ``package``; ``shown`` are the files whose findings and fixes are printed."""

    title: str
    folder: Path
    package: str
    shown: tuple[str, ...]


class DemoError(Exception):
    """A part could not run; the message is for a person."""


def main() -> int:
    if sys.argv[1:] not in ([], ["--offline"]):
        print(__doc__)
        return 2
    try:
        with tempfile.TemporaryDirectory(prefix="rebindlint-demo-") as scratch:
            _run(Path(scratch), offline="--offline" in sys.argv)
    except DemoError as error:
        click.echo(f"demo: {error}", err=True)
        return 2
    except BrokenPipeError:  # the reader has seen enough (`make demo | head`)
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0


def _run(scratch: Path, *, offline: bool) -> None:
    # Linted where it lies, it would have this repository as its context.
    shutil.copytree(EXAMPLES / "tiny_engine", scratch / "tiny_engine", ignore=shutil.ignore_patterns("__pycache__"))
    bundled = Tree(
        "the bundled tiny engine", scratch, "tiny_engine", ("tiny_engine/attention.py", "tiny_engine/quantization.py")
    )
    tree = bundled if offline else _released() or bundled
    _heading(f"1. Lint {tree.title}")
    _summary(tree)
    _heading("2. The findings around attention, in full" if tree is not bundled else "2. Two of its files, in full")
    _echo(_rebindlint(tree.folder, *tree.shown))
    _heading("3. Fix a copy")
    fixed = _fixed_copy(tree, scratch / "fixed")
    for name in tree.shown:
        _diff(name, tree.folder / name, fixed / name)
    _heading("4. The proof: hooks run twice on real tensors, a recorded step replayed after the reload")
    _prove(bundled, scratch / "proof")
    _heading("5. What such a proof looks like in full: rebindlint verify --demo")
    _verify()


def _heading(text: str) -> None:
    click.echo()
    click.secho(text, bold=True)
    click.secho("=" * len(text), bold=True)


def _echo(text: str) -> None:
    click.echo(text.rstrip("\n"))


# The trees


def _released() -> Tree | None:
    """The released vLLM, or None (with the reason printed) when it cannot be had."""
    sys.path.insert(0, str(EXAMPLES.parent))  # the benchmarks lint the same releases; they are not installed
    from benchmarks.released import folder_of
    from rebindlint.model import RebindlintError

    try:
        folder = folder_of(RELEASE)
    except RebindlintError as error:
        click.echo(f"Not available, so a bundled tree is linted instead: {error}")
        return None
    shown = ("vllm/model_executor/layers/attention/mla_attention.py", "vllm/v1/attention/backends/flashinfer.py")
    return Tree(RELEASE.replace("-", " "), folder, "vllm", shown)


# Lint and fix


def _rebindlint(folder: Path, *arguments: str) -> str:
    """Standard output of `rebindlint`; findings (exit status 1) are no error here."""
    run = subprocess.run(
        [sys.executable, "-m", "rebindlint", *arguments], cwd=folder, capture_output=True, text=True, check=False
    )
    if run.returncode not in (0, 1):
        raise DemoError(f"rebindlint {' '.join(arguments)} ended with {run.returncode}\n{run.stderr.rstrip()}")
    return run.stdout


def _summary(tree: Tree) -> None:
    started = time.perf_counter()
    findings = json.loads(_rebindlint(tree.folder, "--output-format", "json", tree.package))
    seconds = time.perf_counter() - started
    severities = Counter(f["severity"] for f in findings)
    counts = {s: severities[s] for s in ("error", "warning", "note") if severities[s]}
    counted = ", ".join(f"{count} {s}" if count == 1 else f"{count} {s}s" for s, count in counts.items())
    files = len({f["filename"] for f in findings})
    click.echo(f"rebindlint {tree.package}: {counted or 'nothing'} in {files} files, {seconds:.1f} s")
    for (code, name), count in sorted(Counter((f["code"], f["name"]) for f in findings).items()):
        click.echo(f"  {count:4} {code} {name}")


def _fixed_copy(tree: Tree, target: Path) -> Path:
    for source in sorted((tree.folder / tree.package).rglob("*.py")):
        copy = target / source.relative_to(tree.folder)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, copy)
    click.echo(f"Fixing {tree.package}, and linting again what was fixed, until nothing changes ...")
    _rebindlint(target, "--fix", "--quiet", "--no-cache", tree.package)
    changed = [
        path
        for path in sorted(target.rglob("*.py"))
        if path.read_bytes() != (tree.folder / path.relative_to(target)).read_bytes()
    ]
    click.echo(f"rebindlint --fix {tree.package}: {len(changed)} files changed")
    return target


def _diff(name: str, before: Path, after: Path) -> None:
    old, new = (path.read_text(encoding="utf-8").splitlines() for path in (before, after))
    if old == new:
        click.echo(f"\n{name}: no fix is safe here")
        return
    click.echo()
    for line in difflib.unified_diff(old, new, f"a/{name}", f"b/{name}", lineterm=""):
        click.secho(line, fg={"+": "green", "-": "red", "@": "cyan"}.get(line[:1]))


# The proof


def _torch_is_there() -> bool:
    if importlib.util.find_spec("torch") is not None:
        return True
    click.echo("Left out: torch is not installed (pip install 'rebindlint[runtime]').")
    return False


def _verify() -> None:
    if _torch_is_there():
        _echo(_rebindlint(EXAMPLES.parent, "verify", "--demo"))


def _prove(tree: Tree, target: Path) -> None:
    if not _torch_is_there():
        return
    from runtime_proof import verdicts

    fixed = _fixed_copy(tree, target)
    left = _findings_by_file(fixed, tree.package)
    for before, after in zip(verdicts(tree.folder), verdicts(fixed), strict=True):
        click.echo(f"\n  {before.layer}")
        click.echo(f"    as written      {before}")
        click.echo(f"    after --fix     {after}")
    for name, codes in left:
        click.echo(f"\n  {name} still has {', '.join(codes)}: no safe fix, so these wait for a person.")


def _findings_by_file(folder: Path, package: str) -> Iterator[tuple[str, list[str]]]:
    findings = json.loads(_rebindlint(folder, "--output-format", "json", "--no-cache", package))
    for name in sorted({f["filename"] for f in findings if f["severity"] != "note"}):
        yield name, sorted({f["code"] for f in findings if f["filename"] == name and f["severity"] != "note"})


if __name__ == "__main__":
    sys.exit(main())
