"""Discovery: targets, context, module names, what is left out, what cannot be used."""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Iterable
from pathlib import Path

import pytest

from rebindlint.config import Config
from rebindlint.discover import Discovery, Source, decode_source, discover, read_source
from rebindlint.model import RebindlintError


def plant(root: Path, names: Iterable[str]) -> None:
    for name in names:
        file = root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()


def modules(found: Discovery) -> dict[str, str]:
    return {source.shown: source.module for source in found.context}


def search(root: Path, *paths: str, config: Config | None = None, force_exclude: bool = False) -> Discovery:
    return discover(paths, config or Config(root=root), force_exclude=force_exclude, cwd=root)


def test_a_package_folder_gives_dotted_names_from_its_parent(tmp_path: Path) -> None:
    plant(
        tmp_path,
        [
            "pkg/__init__.py",
            "pkg/a.py",
            "pkg/sub/__init__.py",
            "pkg/sub/b.py",
            "pkg/space/c.py",
            "pkg/d.pyi",
            "pkg/e.txt",
        ],
    )
    found = search(tmp_path, "pkg")
    assert modules(found) == {
        "pkg/__init__.py": "pkg",
        "pkg/a.py": "pkg.a",
        "pkg/d.pyi": "pkg.d",
        "pkg/space/c.py": "pkg.space.c",
        "pkg/sub/__init__.py": "pkg.sub",
        "pkg/sub/b.py": "pkg.sub.b",
    }
    assert found.targets == frozenset(modules(found))
    assert list(modules(found)) == sorted(modules(found))
    assert found.failures == ()


def test_a_folder_inside_a_package_has_the_package_as_context(tmp_path: Path) -> None:
    plant(tmp_path, ["pkg/__init__.py", "pkg/a.py", "pkg/space/deep/c.py"])
    found = search(tmp_path, "pkg/space")
    assert found.targets == {"pkg/space/deep/c.py"}
    assert modules(found) == {"pkg/__init__.py": "pkg", "pkg/a.py": "pkg.a", "pkg/space/deep/c.py": "pkg.space.deep.c"}


def test_a_plain_folder_is_an_import_root_and_src_folders_are_too(tmp_path: Path) -> None:
    plant(
        tmp_path,
        [
            "tree/vllm/__init__.py",
            "tree/vllm/x.py",
            "tree/script.py",
            "src/ns/mod.py",
            "src/pkg/__init__.py",
            "tests/unit/test_a.py",
        ],
    )
    assert modules(search(tmp_path, "tree")) == {
        "tree/script.py": "script",
        "tree/vllm/__init__.py": "vllm",
        "tree/vllm/x.py": "vllm.x",
    }
    assert modules(search(tmp_path, ".")) == {
        "src/ns/mod.py": "ns.mod",
        "src/pkg/__init__.py": "pkg",
        "tests/unit/test_a.py": "tests.unit.test_a",
        "tree/script.py": "tree.script",
        "tree/vllm/__init__.py": "vllm",
        "tree/vllm/x.py": "vllm.x",
    }


def test_a_file_is_the_target_and_its_project_the_context(tmp_path: Path) -> None:
    plant(
        tmp_path,
        [
            "proj/pyproject.toml",
            "proj/pkg/__init__.py",
            "proj/pkg/space/a.py",
            "proj/pkg/b.py",
            "proj/tools/c.py",
            "outside.py",
        ],
    )
    found = search(tmp_path, "proj/pkg/space/a.py")
    assert found.targets == {"proj/pkg/space/a.py"}
    assert modules(found) == {
        "proj/pkg/__init__.py": "pkg",
        "proj/pkg/b.py": "pkg.b",
        "proj/pkg/space/a.py": "pkg.space.a",
        "proj/tools/c.py": "tools.c",
    }


def test_a_script_sees_its_neighbours_as_python_would_import_them(tmp_path: Path) -> None:
    plant(tmp_path, ["pyproject.toml", "tools/a.py", "tools/neighbour.py", "other/b.py"])
    assert modules(search(tmp_path, "tools/a.py")) == {
        "tools/a.py": "a",
        "tools/neighbour.py": "neighbour",
        "other/b.py": "other.b",
    }


def test_a_file_in_no_project_has_what_it_can_import_as_context(tmp_path: Path) -> None:
    """A temporary or a home folder may hold whole trees that have nothing to do with it."""
    names = (
        "hooks.py",
        "beside.py",
        "pkg/__init__.py",
        "pkg/inner/part.py",
        "checkout/engine/__init__.py",
        "notes/x.py",
    )
    for name in names:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    found = discover(["hooks.py"], Config(root=tmp_path), cwd=tmp_path)
    assert found.targets == {"hooks.py"}
    assert {s.shown: s.module for s in found.context} == {
        "beside.py": "beside",
        "hooks.py": "hooks",
        "pkg/__init__.py": "pkg",
        "pkg/inner/part.py": "pkg.inner.part",
    }
    both = discover(["hooks.py", "."], Config(root=tmp_path), cwd=tmp_path)
    assert {s.shown for s in both.context} == {*names} == {*both.targets}


def test_a_file_of_an_installation_has_its_package_as_context(tmp_path: Path) -> None:
    plant(
        tmp_path,
        [
            "site-packages/__init__.py",
            "site-packages/pkg/__init__.py",
            "site-packages/pkg/space/a.py",
            "site-packages/other/x.py",
        ],
    )
    found = search(tmp_path, "site-packages/pkg/space/a.py", config=Config(root=tmp_path / "elsewhere"))
    assert modules(found)["site-packages/pkg/space/a.py"] == "site-packages.pkg.space.a"
    (tmp_path / "site-packages/__init__.py").unlink()
    found = search(tmp_path, "site-packages/pkg/space/a.py")
    assert modules(found) == {"site-packages/pkg/__init__.py": "pkg", "site-packages/pkg/space/a.py": "pkg.space.a"}


def test_no_two_sources_share_a_module(tmp_path: Path) -> None:
    names = ["one/pkg/__init__.py", "one/pkg/a.py", "two/pkg/__init__.py", "two/pkg/a.py", "x.py", "x.pyi"]
    plant(tmp_path, names)
    found = modules(search(tmp_path, "."))
    assert sorted(found) == sorted(names)
    assert len(set(found.values())) == len(names)
    assert (found["one/pkg/a.py"], found["two/pkg/a.py"], found["x.py"]) == ("pkg.a", "two.pkg.a", "x")


def test_names_are_absolute_outside_the_working_directory(tmp_path: Path) -> None:
    plant(tmp_path, ["a/x.py", "b/y.py"])
    found = discover(["../b"], Config(root=tmp_path), cwd=tmp_path / "a")
    assert found.targets == {(tmp_path / "b" / "y.py").as_posix()}


def test_default_excludes_and_own_excludes(tmp_path: Path) -> None:
    plant(
        tmp_path,
        [
            "a.py",
            "build/b.py",
            ".venv/c.py",
            "gen/d.py",
            "deep/gen/e.py",
            "deep/x_pb2.py",
            "deep/only/f.py",
            "deep/kept/only/g.py",
        ],
    )
    config = Config(root=tmp_path, extend_exclude=("gen", "*_pb2.py", "deep/only"))
    assert search(tmp_path, ".", config=config).targets == {"a.py", "deep/kept/only/g.py"}
    assert "build/b.py" in search(tmp_path, ".", config=Config(root=tmp_path, exclude=("gen",))).targets


def test_gitignore_files_are_respected_where_they_lie_and_above(tmp_path: Path) -> None:
    plant(
        tmp_path,
        [
            ".git/HEAD",
            "out/a.py",
            "pkg/keep.py",
            "pkg/gen_a.py",
            "pkg/gen_b.py",
            "pkg/sub/secret.py",
            "sub/secret.py",
            "only/out.py",
        ],
    )
    (tmp_path / ".gitignore").write_text("# comment\nout/\ngen_*.py\n*.so\n!!\n")
    (tmp_path / "pkg" / ".gitignore").write_text("!gen_b.py\n/sub/secret.py\n")
    everything = {"pkg/keep.py", "pkg/gen_b.py", "sub/secret.py", "only/out.py"}
    assert search(tmp_path, ".").targets == everything
    assert discover(["."], Config(root=tmp_path / "pkg"), cwd=tmp_path / "pkg").targets == {"keep.py", "gen_b.py"}
    assert "out/a.py" in search(tmp_path, ".", config=Config(root=tmp_path, respect_gitignore=False)).targets


def test_the_repository_s_own_exclude_file_counts(tmp_path: Path) -> None:
    plant(tmp_path, [".git/HEAD", "a.py", "private/b.py"])
    (tmp_path / ".git" / "info").mkdir()
    (tmp_path / ".git" / "info" / "exclude").write_text("private\n")
    assert search(tmp_path, ".").targets == {"a.py"}


def test_what_is_named_is_linted_even_when_ignored_unless_forced(tmp_path: Path) -> None:
    plant(tmp_path, [".git/HEAD", "out/a.py", "out/build/b.py", "build/c.py"])
    (tmp_path / ".gitignore").write_text("out/\n")
    assert search(tmp_path, "out/a.py").targets == {"out/a.py"}
    assert search(tmp_path, "out").targets == {"out/a.py"}
    assert search(tmp_path, "build/c.py").targets == {"build/c.py"}
    for path in ("out/a.py", "out", "build/c.py", "build"):
        found = search(tmp_path, path, force_exclude=True)
        assert (found.targets, found.failures) == (frozenset(), ())


def test_force_exclude_keeps_what_is_not_ignored(tmp_path: Path) -> None:
    plant(tmp_path, ["a.py", "b/c.py"])
    assert search(tmp_path, "a.py", "b", force_exclude=True).targets == {"a.py", "b/c.py"}


def test_an_ignored_folder_inside_a_package_keeps_its_dotted_names(tmp_path: Path) -> None:
    plant(tmp_path, ["pkg/__init__.py", "pkg/build/a.py"])
    found = search(tmp_path, "pkg/build")
    assert found.targets == {"pkg/build/a.py"}
    assert modules(found)["pkg/build/a.py"] == "pkg.build.a"


def test_symlink_loops_end(tmp_path: Path) -> None:
    plant(tmp_path, ["pkg/__init__.py", "pkg/a.py"])
    (tmp_path / "pkg" / "loop").symlink_to(tmp_path / "pkg", target_is_directory=True)
    (tmp_path / "pkg" / "dangling.py").symlink_to(tmp_path / "nowhere")
    (tmp_path / "linked.py").symlink_to(tmp_path / "pkg" / "a.py")
    assert search(tmp_path, ".").targets == {"pkg/__init__.py", "pkg/a.py", "linked.py"}


def test_paths_that_cannot_be_used_are_reported_and_the_rest_is_found(tmp_path: Path) -> None:
    plant(tmp_path, ["a.py", "notes.txt", "folder.py/inner.py", "script", "shell"])
    (tmp_path / "script").write_text("#!/usr/bin/env python3\n")
    (tmp_path / "shell").write_text("#!/bin/sh\n")
    found = search(tmp_path, "a.py", "missing", "notes.txt", "folder.py", "script", "shell")
    assert found.targets == {"a.py", "script"}
    assert found.failures == (
        "missing: no such file or folder",
        "notes.txt: not a Python file",
        "folder.py: is a folder, although it is named like a Python file",
        "shell: not a Python file",
    )


def test_pipes_and_loops_of_links_are_refused_and_nothing_waits(tmp_path: Path) -> None:
    plant(tmp_path, ["a.py"])
    os.mkfifo(tmp_path / "pipe.py")
    (tmp_path / "loop.py").symlink_to("loop.py")
    found = search(tmp_path, "pipe.py", "loop.py", "", "a.py/b.py", "a.py")
    assert found.targets == {"a.py"}
    assert found.failures == (
        "pipe.py: not a regular file; `-` reads standard input",
        "loop.py: cannot be read: Too many levels of symbolic links",
        "a path is empty",
        "a.py/b.py: no such file or folder",
    )
    assert search(tmp_path, ".").targets == {"a.py"}


def test_a_file_in_a_folder_that_may_not_be_searched_gives_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As the system refuses a user; root may search everything."""
    plant(tmp_path, ["closed/a.py", "b.py"])
    allowed = os.stat

    def refusing(path: str | Path, *args: object, **kwargs: object) -> os.stat_result:
        if "closed/" in str(path):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
        return allowed(path, *args, **kwargs)  # type: ignore[arg-type]  # handed on as they came

    monkeypatch.setattr(os, "stat", refusing)
    found = search(tmp_path, "closed/a.py", "b.py")
    assert found.failures == ("closed/a.py: cannot be read: Permission denied",)
    assert found.targets == {"b.py"}


def test_a_folder_that_cannot_be_listed_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(tmp_path, ["a.py", "closed/b.py"])
    real = os.scandir

    def scandir(path: str) -> object:
        if str(path).endswith("closed"):
            raise PermissionError(13, "Permission denied")
        return real(path)

    monkeypatch.setattr(os, "scandir", scandir)
    found = search(tmp_path, ".")
    assert (found.targets, found.failures) == (frozenset({"a.py"}), ("closed: cannot be listed: Permission denied",))


def test_standard_input_stands_for_the_file_it_is_named_after(tmp_path: Path) -> None:
    plant(tmp_path, ["pyproject.toml", "pkg/__init__.py", "pkg/a.py", "pkg/b.py"])
    found = discover(["-"], Config(root=tmp_path), stdin_text="x = 1\n", stdin_filename="pkg/a.py", cwd=tmp_path)
    assert found.targets == {"pkg/a.py"}
    assert modules(found)["pkg/b.py"] == "pkg.b"
    (source,) = (source for source in found.context if source.shown == "pkg/a.py")
    assert (source.module, read_source(source)) == ("pkg.a", "x = 1\n")


def test_standard_input_without_a_name_stands_alone(tmp_path: Path) -> None:
    plant(tmp_path, ["pyproject.toml", "a.py"])
    found = discover(["-"], Config(root=tmp_path), stdin_text="x = 1\n", cwd=tmp_path)
    assert found.targets == {"-"}
    assert [source.shown for source in found.context] == ["-"]


def test_standard_input_for_a_new_folder_is_linted_too(tmp_path: Path) -> None:
    found = discover(["-"], Config(root=tmp_path), stdin_text="x = 1\n", stdin_filename="new/a.py", cwd=tmp_path)
    assert found.targets == {"new/a.py"}
    assert found.failures == ()


def test_standard_input_for_a_new_file_is_linted_too(tmp_path: Path) -> None:
    plant(tmp_path, ["pkg/__init__.py"])
    found = discover(["-"], Config(root=tmp_path), stdin_text="", stdin_filename="pkg/new.py", cwd=tmp_path)
    assert (found.targets, modules(found)["pkg/new.py"]) == (frozenset({"pkg/new.py"}), "pkg.new")


def source_of(path: Path, raw: bytes) -> Source:
    path.write_bytes(raw)
    return Source(path, path.name, "m")


def test_sources_are_decoded_as_python_would(tmp_path: Path) -> None:
    file = tmp_path / "m.py"
    assert read_source(source_of(file, "x = 'é'\r\ny\rz\n".encode())) == "x = 'é'\r\ny\rz\n"
    assert (
        read_source(source_of(file, "# coding: latin-1\nx = 'é'\n".encode("latin-1"))) == "# coding: latin-1\nx = 'é'\n"
    )
    assert read_source(source_of(file, b"\xef\xbb\xbfx = 1\n")) == "x = 1\n"


def test_the_encoding_writes_the_same_bytes_back() -> None:
    for raw in (b"\xef\xbb\xbfx = 1\n", "# coding: latin-1\nx = 'é'\n".encode("latin-1"), "é\r\n".encode()):
        text, encoding = decode_source(raw)
        assert text.encode(encoding) == raw


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (b"x = '\xff'\n", "m.py: cannot be decoded: "),
        (b"# coding: klingon\n", "m.py: cannot be decoded: unknown encoding"),
    ],
)
def test_a_file_that_cannot_be_decoded_gives_one_line(tmp_path: Path, raw: bytes, message: str) -> None:
    with pytest.raises(RebindlintError) as caught:
        read_source(source_of(tmp_path / "m.py", raw))
    assert str(caught.value).startswith(message)
    assert "\n" not in str(caught.value)


def test_a_file_that_cannot_be_read_gives_one_line(tmp_path: Path) -> None:
    with pytest.raises(RebindlintError, match=r"^gone\.py: cannot be read: No such file or directory$"):
        read_source(Source(tmp_path / "gone.py", "gone.py", "gone"))


def test_three_thousand_files_are_found_quickly(tmp_path: Path) -> None:
    plant(tmp_path, [".git/HEAD", *(f"pkg/f{folder}/m{file}.py" for folder in range(60) for file in range(50))])
    (tmp_path / ".gitignore").write_text("".join(f"ignored_{n}/\n*.ext{n}\nsome_{n}.py\n" for n in range(60)))
    start = time.perf_counter()
    found = search(tmp_path, ".")
    took = time.perf_counter() - start
    assert len(found.targets) == 3000
    assert took < 3, f"{took:.2f} s"  # 0.1 s when nothing else runs; generous for loaded machines
