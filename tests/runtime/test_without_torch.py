"""What has to work where torch is not installed, and what must not import it where it is."""

from __future__ import annotations

import subprocess
import sys

import pytest

BLOCK = """
import sys
class Block:
    def find_spec(self, name, path=None, target=None):
        if name.partition('.')[0] == 'torch':
            raise ModuleNotFoundError("No module named 'torch'", name='torch')
sys.meta_path.insert(0, Block())
import importlib.util
find = importlib.util.find_spec
importlib.util.find_spec = lambda name, *rest: None if name == 'torch' else find(name, *rest)
"""


def python(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    "module",
    ["", ".codes", ".findings", ".report", ".sites", ".command", ".pytest_plugin"],
)
def test_importing_does_not_import_torch(module: str) -> None:
    done = python(f"import sys, rebindlint.runtime{module}; assert 'torch' not in sys.modules")
    assert (done.returncode, done.stderr) == (0, "")


def test_pages_need_no_torch() -> None:
    done = python(BLOCK + "from rebindlint.runtime import page; print(page('RT101').splitlines()[0])")
    assert (done.stdout, done.stderr) == ("# held-dead (RT101)\n", "")


def test_the_command_names_the_extra() -> None:
    done = python(BLOCK + "from rebindlint.runtime.command import verify; verify(['--demo'])")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "rebindlint: the runtime half needs torch: pip install 'rebindlint[runtime]'\n"


def test_the_api_names_the_extra() -> None:
    done = python(BLOCK + "import rebindlint.runtime as r\ntry: r.Guard\nexcept ImportError as e: print(e)")
    assert done.stdout == "the runtime half needs torch: pip install 'rebindlint[runtime]'\n"


def test_every_public_name_can_be_had() -> None:
    pytest.importorskip("torch")
    import rebindlint.runtime as runtime

    assert {name for name in runtime.__all__ if getattr(runtime, name, None) is None} == set()
    assert dir(runtime) == sorted(runtime.__all__)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = runtime.nothing
