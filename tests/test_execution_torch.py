"""What torch's functions and methods do to memory, as the execution sees it."""

from __future__ import annotations

import pytest
from executed import brief, facts, in_method


@pytest.mark.parametrize(
    ("value", "allocates"),
    [
        ("layer.weight.contiguous()", False),
        ("layer.weight.transpose(0, 1)", False),
        ("layer.weight.t()", False),
        ("layer.weight.transpose(0, 1).contiguous()", True),
        ("layer.weight.t().contiguous()", True),
        ("layer.weight.t().t().contiguous()", False),
        ("layer.weight.view(-1)", False),
        ("layer.weight.view(torch.int32)", False),
        ("layer.weight.reshape(-1)", False),
        ("layer.weight.t().reshape(-1)", True),
        ("layer.weight.detach()", False),
        ("layer.weight.data", False),
        ("layer.weight[0]", False),
        ("layer.weight[:2]", False),
        ("layer.weight.squeeze().unsqueeze(0)", False),
        ("layer.weight.to(layer.weight.dtype)", False),
        ("layer.weight.to(layer.weight.device)", False),
        ("layer.weight.cuda()", False),
        ("layer.weight.float().to(torch.float32)", True),
        ("layer.weight.to(torch.float8_e4m3fn)", True),
        ("layer.weight.clone()", True),
        ("layer.weight + 1", True),
        ("-layer.weight", True),
        ("layer.weight.max(dim=0).values", True),
        ("torch.cat([layer.weight, layer.scale])", True),
        ("torch.empty_like(layer.weight)", True),
        ("torch.zeros(4)", True),
        ("torch.transpose(layer.weight, 0, 1)", False),
        ("torch.nn.functional.pad(layer.weight, (0, 1))", True),
        ("Parameter(layer.weight.data)", False),
        ("Parameter(layer.weight.clone())", True),
        ("layer.weight.chunk(2)[0]", False),
        ("layer.weight.mul_(2)", False),
        ("layer.weight.cpu()", False),
        ("layer.weight.tolist()", False),
        ("layer.weight.size(0)", False),
    ],
)
def test_torch_table(value: str, allocates: bool) -> None:
    """A new tensor is a new address; a view, the input itself and host values are not."""
    found = brief(facts(hooks=in_method(f"layer.w = {value}")))
    assert {line for line in found if line.startswith("address")} == (
        set() if not allocates else {line for line in found if line.endswith("layer.w")}
    )
    assert any(line.endswith(" layer.w") and line.startswith("address") for line in found) is allocates
