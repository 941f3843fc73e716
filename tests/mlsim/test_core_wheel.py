"""The wheel of the core answers by itself, as the whole package does."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[2]
BUILD = "import sys; from hatchling.build import build_wheel; build_wheel(sys.argv[1])"
ASK = """
import json, sys
import mlsim
from mlsim import Engine, Hardware, Models
one = {"model": "Llama3_8B", "hardware": "H100"}
trained = Engine.train(model="Llama3_8B", hardware="DGX_H100", tensor_parallel=8, estimate="calibrated", global_batch=64)
answers = [
    Engine.solve(model="ResNet50", hardware="A100", batch_size=8, estimate="calibrated").latency,
    Engine.serve(**one, batch_size=8, estimate="calibrated").decode_throughput,
    Engine.load(**one, rate=4, prompt_tokens=500, output_tokens=100).time_per_output_token,
    Engine.gemm(512, 512, 512, hardware="H100", precision="fp8"),
    trained.step_time,
    Engine.footprint(trained, grid="Germany", data_centre="AWS", embodied=False).operational_carbon,
    len(list(Hardware.Cloud)) + len(list(Models)),
]
outer = [name for name in sys.modules if name.startswith(("mlsim.plots", "mlsim.display"))]
print(json.dumps([[str(each) for each in answers], outer, mlsim.__file__]))
"""


def asked(folder: Path) -> list[object]:
    done = subprocess.run(
        [sys.executable, "-P", "-c", ASK], capture_output=True, text=True, check=True,
        cwd=folder, env={**os.environ, "PYTHONPATH": str(folder)},
    )  # fmt: skip
    return list(json.loads(done.stdout))


def test_the_wheel_of_the_core_answers_as_the_whole_package_does(tmp_path: Path) -> None:
    sizes = {}
    for name, core in (("core", "1"), ("whole", "")):
        subprocess.run(
            [sys.executable, "-P", "-c", BUILD, str(tmp_path)], check=True, capture_output=True,
            cwd=ROOT / "mlsim_pkg", env={**os.environ, "MLSIM_CORE": core},
        )  # fmt: skip
        wheel = next(tmp_path.glob("mlsim-*.whl"))
        zipfile.ZipFile(wheel).extractall(tmp_path / name)
        sizes[name] = wheel.stat().st_size
    assert not (tmp_path / "core/mlsim/plots").exists()
    assert not list((tmp_path / "core").glob("mlsim_*/"))[1:]  # what pip wants to know, alone
    assert sizes["core"] < 0.75 * sizes["whole"]
    (answers, outer, home), whole = asked(tmp_path / "core"), asked(tmp_path / "whole")
    assert answers == whole[0]
    assert outer == []
    assert str(home).startswith(str(tmp_path / "core"))
