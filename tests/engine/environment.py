"""The environment that the engine tests run in: the real vLLM on a CPU, with the packages that it needs and no others.

    python tests/engine/environment.py          builds it where it is missing or stale, and prints its Python
    python tests/engine/environment.py --check  prints its Python, or fails where it is missing or stale

It lies outside the repository, below `$REBINDLINT_ENGINE_ENV` or the user's cache, and is shared by everything that runs
the engine. Only the standard library is used: this runs before anything is installed.
"""

from __future__ import annotations

import argparse
import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import venv
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

REQUIREMENTS = Path(__file__).with_name("requirements.txt")
ENGINE = "0.32.0"  # the release of vLLM; a part of the folder's name, so that another release gets a folder of its own


def folder() -> Path:
    """Where the environment lies, whether or not it is there."""
    if chosen := os.environ.get("REBINDLINT_ENGINE_ENV"):
        return Path(chosen).expanduser().absolute()
    cache = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(cache).expanduser() / "rebindlint" / f"engine-{ENGINE}"


def python(environment: Path) -> Path:
    return environment / "bin" / "python"


def fingerprint() -> str:
    """What an environment must have been built from to be good: the pins and the interpreter's minor version."""
    text = REQUIREMENTS.read_bytes() + f"{sys.version_info.major}.{sys.version_info.minor}".encode()
    return hashlib.sha256(text).hexdigest()


def is_built(environment: Path) -> bool:
    """True for an environment whose last build came to its end, from the pins as they are now."""
    try:
        return _mark(environment).read_text() == fingerprint() and python(environment).exists()
    except OSError:
        return False


def build(environment: Path) -> None:
    """Make the environment, once, also when several processes ask at the same time.

    Raises:
        subprocess.CalledProcessError: When the packages cannot be installed; pip has said why on stderr.
        OSError: When the folder cannot be written.
    """
    environment.parent.mkdir(parents=True, exist_ok=True)
    with _locked(environment.with_name(environment.name + ".lock")):
        if is_built(environment):
            return
        shutil.rmtree(environment, ignore_errors=True)
        print(f"Building the engine environment in {environment} (about 1.5 GB) ...", file=sys.stderr, flush=True)
        venv.create(environment, with_pip=True, symlinks=True)
        # -qq drops the warnings about index locations; errors are still shown.
        command = [str(python(environment)), "-m", "pip", "install", "-qq", "--no-input", "--no-deps", "--no-compile"]
        # stdout is for the path of the interpreter alone.
        subprocess.run([*command, "-r", str(REQUIREMENTS)], check=True, stdout=sys.stderr)
        _mark(environment).write_text(fingerprint())


def _mark(environment: Path) -> Path:
    return environment / ".built-from"


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    with path.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def main() -> int:
    parser = argparse.ArgumentParser(description="Build the environment of the engine tests.")
    parser.add_argument("--check", action="store_true", help="build nothing; fail when it is missing or stale")
    arguments = parser.parse_args()
    environment = folder()
    if not sys.platform.startswith("linux"):
        print("The engine is released for Linux only: its tests will be skipped.", file=sys.stderr)
        return int(arguments.check)
    if not arguments.check:
        try:
            build(environment)
        except (subprocess.CalledProcessError, OSError) as error:
            print(f"error: the engine environment cannot be built: {error}", file=sys.stderr)
            return 2
    elif not is_built(environment):
        print(f"error: no engine environment in {environment}; build it with: make engine", file=sys.stderr)
        return 2
    print(python(environment))
    return 0


if __name__ == "__main__":
    sys.exit(main())
