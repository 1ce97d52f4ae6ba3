"""The pytest plugin: fixture ``rebind_guard``, marker ``rebind``.

```python
@pytest.mark.rebind
def test_reload_of_my_layer(rebind_guard):
    layer, x = MyLayer().to(rebind_guard.device), torch.randn(2, 8, device=rebind_guard.device)
    guard = rebind_guard(layer)
    guard.capture(lambda layer: layer(x))
    with guard.reloading():
        reload(layer)
```

The device is ``cuda`` where there is one, else ``cpu``; the marker's ``device`` fixes it, and a test that asks for
``cuda`` is skipped without one. Further arguments of the marker go to ``Guard``. A guard that watched a reload and
was not verified by the test is verified at its end, and the test fails with the report. Without torch the tests are
skipped.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    import torch

    from rebindlint.runtime.guard import Guard

__all__ = ["RebindGuard", "pytest_configure", "rebind_guard"]


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers",
        "rebind(device='auto', **options): options of the rebind_guard fixture; device='cuda' skips the test where there is none",
    )


class RebindGuard:
    """What the fixture gives: call it with a model for a guard, with the same options as ``Guard``."""

    def __init__(self, device: str, options: dict[str, Any]) -> None:
        self.device = device
        self._options = options
        self._guards: list[Guard] = []

    def __call__(self, model: torch.nn.Module, **options: Any) -> Guard:
        from rebindlint.runtime.guard import Guard

        guard = Guard(model, **{**self._options, **options})
        self._guards.append(guard)
        return guard

    def finish(self) -> list[str]:
        """Verify what the test left unverified; the texts of the reports with errors."""
        texts = []
        for guard in self._guards:
            if guard.reloaded and not guard.verified and not guard.reload_error:
                report = guard.verify()
                if not report.ok:
                    texts.append(report.text(verbose=True))
            guard.close()
        return texts


@pytest.fixture
def rebind_guard(request: pytest.FixtureRequest) -> Iterator[RebindGuard]:
    """Makes guards for models on `device`; verifies at the end what the test did not."""
    torch = pytest.importorskip("torch", reason="rebind_guard needs torch: pip install 'rebindlint[runtime]'")
    marker = request.node.get_closest_marker("rebind")
    options = dict(marker.kwargs) if marker is not None else {}
    wanted = options.pop("device", "auto")
    if wanted == "cuda" and not torch.cuda.is_available():
        pytest.skip("no CUDA device")
    device = ("cuda" if torch.cuda.is_available() else "cpu") if wanted == "auto" else wanted
    guards = RebindGuard(device, options)
    yield guards
    texts = guards.finish()
    if texts:
        pytest.fail("the reload is not safe\n" + "\n".join(texts), pytrace=False)
