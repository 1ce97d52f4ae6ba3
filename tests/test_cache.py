"""The cache: never wrong, never in the way."""

from __future__ import annotations

import os
import pickle
from dataclasses import replace
from pathlib import Path

import pytest

import rebindlint.cache
from rebindlint.cache import FOLDER, Analysis, Cache, result_key
from rebindlint.config import Config
from rebindlint.discover import Source
from rebindlint.model import (
    Applicability,
    Binding,
    Cell,
    Diagnostic,
    Edit,
    Fix,
    Frame,
    Hazard,
    Place,
    Position,
    Protocol,
    Rebinding,
    Severity,
    Value,
)
from rebindlint.parse_errors import Unparsed

PLACE = Place("a.py", Position(1, 2), Position(1, 3))
FACT = Rebinding(
    Hazard.ADDRESS,
    Binding.ATTRIBUTE,
    Cell("self.x", "x"),
    "A.hook",
    PLACE,
    PLACE,
    Value.FRESH,
    frozenset({Protocol.DIRECT}),
)
FULL = Diagnostic(
    "RB101",
    "attribute-rebind",
    "message",
    Severity.ERROR,
    PLACE,
    "self.x",
    "A.hook",
    (Protocol.DIRECT, Protocol.LAYERWISE),
    (Frame("a.py", 1, "A.hook"),),
    Fix(Applicability.UNSAFE, "Copy", (Edit(PLACE, "y"),)),
    "help",
    FACT,
)
ANALYSIS = Analysis((FULL,), {"b.py": Unparsed("invalid syntax", 3, 4)}, frozenset({"a.py", "b.py"}), hooks=7)


def source(folder: Path, name: str = "a.py", text: str = "x = 1\n") -> Source:
    path = folder / name
    path.write_text(text)
    os.utime(path, ns=(10**18, 10**18))
    return Source(path, name, name.removesuffix(".py"))


def test_what_is_stored_is_loaded_without_the_facts(tmp_path: Path) -> None:
    cache = Cache(tmp_path / FOLDER)
    assert cache.load("key") is None
    cache.store("key", ANALYSIS)
    loaded = cache.load("key")
    assert loaded == ANALYSIS
    assert loaded is not None
    assert loaded.diagnostics[0].fact is None
    assert loaded.diagnostics[0].severity is Severity.ERROR


def test_the_folder_is_marked_as_a_cache_that_git_ignores(tmp_path: Path) -> None:
    Cache.for_config(Config(root=tmp_path)).store("key", ANALYSIS)
    assert (tmp_path / FOLDER / ".gitignore").read_text() == "*\n"
    assert (tmp_path / FOLDER / "CACHEDIR.TAG").read_text().startswith("Signature: 8a477f597d28d172789f06886806bc55\n")
    Cache.for_config(Config(root=tmp_path, cache_dir="elsewhere/cache")).store("key", ANALYSIS)
    assert (tmp_path / "elsewhere" / "cache" / "key.pickle").exists()


def test_only_the_newest_results_are_kept(tmp_path: Path) -> None:
    cache = Cache(tmp_path)
    for number in range(12):
        cache.store(f"key{number}", ANALYSIS)
        os.utime(tmp_path / f"key{number}.pickle", ns=(number * 10**9, number * 10**9))
    assert sorted(file.stem for file in tmp_path.glob("*.pickle")) == sorted(f"key{n}" for n in range(4, 12))


@pytest.mark.parametrize("raw", [b"", b"garbage", b"\x80\x05.", pickle.dumps(ANALYSIS)[:-20], pickle.dumps([1, 2])])
def test_a_damaged_result_is_no_result(tmp_path: Path, raw: bytes) -> None:
    (tmp_path / "key.pickle").write_bytes(raw)
    assert Cache(tmp_path).load("key") is None


class Evil:
    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.system, ("touch evil",)


def test_a_result_from_elsewhere_runs_no_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "key.pickle").write_bytes(pickle.dumps(Evil()))
    assert Cache(tmp_path).load("key") is None
    assert not (tmp_path / "evil").exists()


def test_a_folder_that_cannot_be_written_is_no_failure(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    cache = Cache(tmp_path / "file" / "cache")
    cache.store("key", ANALYSIS)
    assert cache.load("key") is None


def test_nothing_is_left_behind_when_writing_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(source: str, target: str) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    Cache(tmp_path).store("key", ANALYSIS)
    assert list(tmp_path.iterdir()) == []


def test_the_key_follows_files_and_what_matters_of_the_configuration(tmp_path: Path) -> None:
    config = Config(root=tmp_path)
    one = source(tmp_path)
    key = result_key([one], config)
    assert result_key([one], config) == key
    assert result_key([one], replace(config, select=("RB1",), output_format="json", jobs=3)) == key
    for other in (
        replace(config, reload="direct"),
        replace(config, hooks=("h",)),
        replace(config, allocators=("a",)),
        replace(config, helpers=(("h", "copies"),)),
        replace(config, target_version="vllm==0.26"),
    ):
        assert result_key([one], other) != key
    assert result_key([replace(one, module="other")], config) != key
    assert result_key([replace(one, shown="x/a.py")], config) != key
    assert result_key([one, source(tmp_path, "b.py")], config) != key
    os.utime(one.path, ns=(10**18 + 1, 10**18 + 1))
    assert result_key([one], config) != key


def test_the_key_follows_size_and_standard_input(tmp_path: Path) -> None:
    config = Config(root=tmp_path)
    key = result_key([source(tmp_path)], config)
    assert result_key([source(tmp_path, text="x = 12\n")], config) != key
    one = source(tmp_path)
    assert result_key([replace(one, text="a")], config) != result_key([replace(one, text="b")], config)
    one.path.unlink()
    assert result_key([one], config) != key


def test_the_key_follows_the_tool_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = Config(root=tmp_path)
    key = result_key([], config)
    monkeypatch.setattr(rebindlint.cache, "installed_version", lambda: "99.0")
    assert result_key([], config) != key
    monkeypatch.undo()
    own = tmp_path / "own"
    own.mkdir()
    (own / "rule.py").write_text("x = 1\n")
    monkeypatch.setattr(rebindlint, "__path__", [str(own)])
    before = result_key([], config)
    (own / "rule.py").write_text("x = 22\n")
    assert result_key([], config) != before
