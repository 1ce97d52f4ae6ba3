from __future__ import annotations

import importlib.metadata

import pytest
import torch

pytest_plugins = ["pytester"]

PLUGIN = "rebindlint.runtime.pytest_plugin"
INSTALLED = any(entry.value == PLUGIN for entry in importlib.metadata.entry_points(group="pytest11"))

LAYER = """
import pytest, torch
from torch import nn

class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = torch.ones(2, 2)
    def forward(self, x):
        return x @ self.w
    def reload(self, safe):
        if safe:
            self.w.copy_(torch.full((2, 2), 3.0))
        else:
            self.w = torch.full((2, 2), 3.0)
x = torch.ones(1, 2)
"""


def outcome(pytester: pytest.Pytester, source: str, *arguments: str) -> pytest.RunResult:
    pytester.makepyfile(LAYER + source)
    plugin = () if INSTALLED else ("-p", PLUGIN)
    return pytester.runpytest("--strict-markers", *plugin, *arguments)


def test_a_layers_own_test_is_five_lines(pytester: pytest.Pytester) -> None:
    source = """
@pytest.mark.rebind
@pytest.mark.parametrize("safe", [True, False])
def test_reload(rebind_guard, safe):
    layer = Layer()
    guard = rebind_guard(layer)
    guard.capture(lambda layer: layer(x))
    with guard.reloading():
        layer.reload(safe)
"""
    result = outcome(pytester, source)
    result.assert_outcomes(passed=2, errors=1)
    result.stdout.fnmatch_lines(["*the reload is not safe*", "*RT101 error: `model.w` was bound to other storage*"])


def test_what_the_test_verified_is_its_own_business(pytester: pytest.Pytester) -> None:
    source = """
def test_reload(rebind_guard):
    layer = Layer()
    guard = rebind_guard(layer)
    guard.capture(lambda layer: layer(x))
    with guard.reloading():
        layer.reload(False)
    assert not guard.verify().ok
"""
    outcome(pytester, source).assert_outcomes(passed=1)


def test_a_reload_that_raised_is_reported_once(pytester: pytest.Pytester) -> None:
    source = """
def test_reload(rebind_guard):
    guard = rebind_guard(Layer())
    guard.capture(lambda layer: layer(x))
    with guard.reloading():
        raise OSError("disk gone")
"""
    result = outcome(pytester, source)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*OSError: disk gone*"])


def test_the_markers_options_reach_the_guard(pytester: pytest.Pytester) -> None:
    source = """
from rebindlint.runtime import Tolerance
@pytest.mark.rebind(device="cpu", tolerance=Tolerance(atol=1e9))
def test_reload(rebind_guard):
    assert rebind_guard.device == "cpu"
    guard = rebind_guard(Layer())
    assert guard.capture(lambda layer: layer(x)).tolerance.atol == 1e9
"""
    outcome(pytester, source).assert_outcomes(passed=1)


@pytest.mark.skipif(torch.cuda.is_available(), reason="speaks of machines without a CUDA device")
def test_a_test_that_wants_cuda_is_skipped_without_one(pytester: pytest.Pytester) -> None:
    source = """
@pytest.mark.rebind(device="cuda")
def test_reload(rebind_guard):
    raise AssertionError("not run")
"""
    outcome(pytester, source).assert_outcomes(skipped=1)


def test_the_marker_and_the_fixture_are_listed(pytester: pytest.Pytester) -> None:
    outcome(pytester, "", "--markers").stdout.fnmatch_lines(["*pytest.mark.rebind(device='auto'*"])
    outcome(pytester, "", "--fixtures").stdout.fnmatch_lines(["rebind_guard*"])


def test_a_failed_assertion_shows_the_report_and_none_of_our_code(pytester: pytest.Pytester) -> None:
    source = """
from rebindlint.runtime import assert_reload_safe
def test_reload():
    layer = Layer()
    assert_reload_safe(layer, lambda layer: layer(x), lambda: layer.reload(False))
"""
    result = outcome(pytester, source)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*RT101 error: `model.w` was bound to other storage*"])
    result.stdout.no_fnmatch_line("*guard.capture(step)*")
