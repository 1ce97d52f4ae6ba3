"""What a project declares in its configuration: helpers, allocators, the version of the vllm that it imports."""

from __future__ import annotations

from pathlib import Path

import pytest
from executed import brief, executed, in_method, index_of

from rebindlint.config import Config
from rebindlint.model import HelperKind

IMPORT = "from kernels import make_room, put"


@pytest.mark.parametrize(
    ("kind", "expected"), [("rebinds", {"address parameter layer.weight"}), ("copies", set()), ("copies-if", set())]
)
def test_a_declared_helper_does_what_is_declared(kind: str, expected: set[str]) -> None:
    text = in_method("put(layer, 'weight', layer.weight * 2)", top=IMPORT)
    assert brief(executed(Config(helpers=(("kernels.put", kind),)), hooks=text).facts) == expected


def test_a_declared_allocator_gives_new_memory() -> None:
    text = in_method("layer.w = make_room(64)", top=IMPORT)
    assert brief(executed(hooks=text).facts) == set()
    assert brief(executed(Config(allocators=("kernels.make_room",)), hooks=text).facts) == {"address attribute layer.w"}


@pytest.mark.parametrize(
    ("version", "kind"),
    [("vllm==0.20.2", HelperKind.REBINDS), ("vllm==0.26", HelperKind.PREFER_COPY), ("vllm==0.33.0", HelperKind.COPIES)],
)
def test_a_plugin_takes_the_dialect_of_the_version_it_targets(tmp_path: Path, version: str, kind: HelperKind) -> None:
    config = Config(target_version=version)
    index = index_of(tmp_path, config, plugin="from vllm.model_executor.layers.linear import LinearMethodBase\n")
    assert index.dialect_for("plugin").kind is kind
    assert index.dialect_for("plugin").module == "vllm.model_executor.utils"
