"""``rebindlint verify --model`` as users run it, each in a process of its own."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from .conftest import HERE, Engine


def verify(engine: Engine, *arguments: str, script: str = "") -> tuple[int, str, str]:
    done = engine.run([*([script] if script else ["-m", "rebindlint"]), "verify", *arguments])
    return done.returncode, done.stdout, done.stderr


def pair(checkpoints: Path, kind: str) -> list[str]:
    return ["--model", str(checkpoints / kind / "v1"), "--reload-from", str(checkpoints / kind / "v2")]


def test_a_clean_reload(engine: Engine, checkpoints: Path) -> None:
    code, out, err = verify(engine, *pair(checkpoints, "llama"))
    assert code == 0, err
    assert "replayed step against eager step after the reload (exact): equal" in out
    assert out.endswith("Found 6 notes, and nothing worse: the reload is safe for the captured step.\n")
    told = [line for line in err.splitlines() if line.endswith(" ...")]
    assert [line.split()[0] for line in told] == ["starting", "capturing", "reloading", "verifying"]


def test_a_scale_that_is_freed_under_a_native_handle(engine: Engine, checkpoints: Path) -> None:
    """No tensor's address or value is wrong; the results are."""
    code, out, err = verify(engine, *pair(checkpoints, "w8a8"), "--output-format", "json")
    assert code == 1, err
    found = [record for record in json.loads(out) if record["severity"] == "error"]
    outcome = next(record for record in found if record["compared"]["subject"].startswith("result of the step"))
    assert outcome["code"] == "RT104"
    assert "`model.layers.0.self_attn.qkv_proj`" in outcome["message"]
    assert outcome["filename"].endswith("model_executor/layers/linear.py")
    (evidence,) = outcome["evidence"]
    assert evidence.startswith("all tensors that were compared are equal to the fresh load's: ")
    assert evidence.endswith("such as behind the 10 native handles that the reload replaced")
    assert not any(record["tensor"] for record in found), "every tensor holds the right values"


def test_derived_weights_that_are_bound_anew(engine: Engine, checkpoints: Path) -> None:
    script = str(HERE / "rebinding_mla.py")
    code, out, err = verify(engine, *pair(checkpoints, "mla"), "--output-format", "json", script=script)
    assert code == 1, err
    records = json.loads(out)
    dead = {record["tensor"]: record for record in records if record["code"] == "RT101"}
    stem = "model.model.layers.{}.self_attn.mla_attn.mla_attn.{}"
    assert dead.keys() == {stem.format(layer, name) for layer in (0, 1) for name in ("W_UK_T", "W_UV")}
    for record in dead.values():
        assert record["read_by"]["operator"] == "aten.bmm.out"
        assert record["read_by"]["at"]["filename"].endswith("mla_attention.py")
        assert record["rebound_at"]["filename"].endswith("rebinding_mla.py")
        assert record["old_storage"]["state"] == "unowned"
        assert record["evidence"] == [
            "filled with NaN: the eager step does not change, 100% of the replay's result is NaN"
        ]
    assert [record["code"] for record in records if record["severity"] == "error"] == ["RT101"] * 4 + ["RT102"]


def test_a_checkpoint_that_the_engine_refuses(engine: Engine, checkpoints: Path, tmp_path: Path) -> None:
    shutil.copytree(checkpoints / "llama" / "v1", tmp_path / "unfit")
    config = tmp_path / "unfit" / "config.json"
    config.write_text(config.read_text().replace('"num_attention_heads": 4', '"num_attention_heads": 3'))
    code, out, err = verify(engine, "--model", str(config.parent), "--reload-from", str(config.parent))
    assert (code, out) == (2, "")
    (told,) = [line for line in err.splitlines() if line.startswith("rebindlint: ")]
    assert told.startswith(f"rebindlint: the engine could not load {config.parent}: ")
    assert "hidden size (256) is not a multiple of the number of attention heads (3)" in told
    assert "Traceback" not in err


def test_layers_that_the_model_does_not_have_are_no_acquittal(engine: Engine, checkpoints: Path) -> None:
    code, out, err = verify(engine, *pair(checkpoints, "mixtral"), "--layers", "layers.1*")
    assert (code, out) == (2, "")
    (told,) = [line for line in err.splitlines() if line.startswith("rebindlint: ")]
    assert told.startswith("rebindlint: no tensor of the model matches --layers layers.1*; a name is model.layers.0.")
    assert "Traceback" not in err


def test_an_engine_that_dies_leaves_what_is_known(engine: Engine, checkpoints: Path) -> None:
    """Processing packed weights twice packs them again; the kernel that reads them then corrupts the heap."""
    code, out, err = verify(engine, "--model", str(checkpoints / "gptq" / "v1"), "--path", "process-twice")
    assert code == 1, err
    assert "qweight` changed from int32[16, 512]" in out
    assert "RT106" in out
    assert "rebindlint: " not in err
    assert "leaked" not in err
    if "the process ended while the step was run" in out:
        assert "note: the engine's process died of SIG" in out


def test_two_ranks(engine: Engine, checkpoints: Path) -> None:
    code, out, err = verify(engine, *pair(checkpoints, "llama"), "--tensor-parallel", "2", "--layers", "model.layers.1")
    assert code == 0, err
    for rank in (0, 1):
        assert f"rank {rank}: replayed step against eager step after the reload (exact): equal" in out
        assert f"rank {rank}: result of the step against a fresh load (exact): equal" in out
    assert "layers.0" not in out
    assert "about other layers than model.layers.1\n" in out


def test_two_ranks_with_plain_linears(engine: Engine, checkpoints: Path) -> None:
    """The ranks are processes of their own: what the driver sets in its own does not reach them."""
    code, out, err = verify(
        engine, *pair(checkpoints, "llama"), "--tensor-parallel", "2", "--plain-linears", "--output-format", "json"
    )
    assert code == 0, err
    noted = {record["tensor"] for record in json.loads(out)}
    assert noted
    assert not any("handler" in tensor for tensor in noted)


@pytest.mark.parametrize(
    ("moment", "doing", "known"),
    [
        ("verify", "verifying against the captured step and a fresh load", "ranks 0, 1 knew"),
        ("reload", "reloading from ", "rank 0 knew"),
    ],
)
def test_a_rank_that_dies_leaves_what_the_others_know(
    engine: Engine, checkpoints: Path, moment: str, doing: str, known: str
) -> None:
    killed = replace(engine, variables={**engine.variables, "KILLED_IN": moment})
    arguments = [*pair(checkpoints, "llama"), "--tensor-parallel", "2", "--output-format", "json"]
    code, out, err = verify(killed, *arguments, script=str(HERE / "killed_rank.py"))
    assert code == 2, err
    (told,) = [line for line in err.splitlines() if line.startswith("rebindlint: ")]
    assert told.startswith(f"rebindlint: rank 1 of 2 died of SIGKILL while {doing}")
    assert f"; reported is what {known} until then" in told
    records = json.loads(out)
    assert {record["code"] for record in records} <= {"RT100", "RT109"}
    assert "RT109" in {record["code"] for record in records}
    assert all(record["evidence"][-1].startswith("on rank ") for record in records)
