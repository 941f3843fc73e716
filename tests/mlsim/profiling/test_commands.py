"""Commands that profile a script: they can be pasted into a shell, and suit the device."""

from __future__ import annotations

import ast
import shlex
import subprocess

from refusals import answered

from mlsim import Hardware
from mlsim.profiling.commands import TOOLS, capability_of, metrics_for, profile_command


def test_a_shell_understands_the_commands_and_python_the_code() -> None:
    script = ["train.py", "--name", "a b; rm $HOME"]
    for tool in set(TOOLS) - {"torch"}:
        text = profile_command(
            script, tool=tool, hardware="MI300X" if tool == "rocprof" else "A100"
        )
        done = subprocess.run(
            ["bash", "-n"], input=text, text=True, capture_output=True, check=False
        )
        assert (done.returncode, done.stderr) == (0, "")
        # The arguments reach the script as they were given.
        assert shlex.join(["python3", *script]) in text
    tree = ast.parse(profile_command("train.py", tool="torch"))
    calls = {ast.unparse(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    assert {"schedule", "profile", "profiler.step", "done.export_chrome_trace"} <= calls
    assert "CUDA" in ast.unparse(tree)
    assert "CUDA" not in profile_command("train.py", tool="torch", hardware="EPYC9654")


def test_nsight_compute_gets_the_metrics_of_the_architecture() -> None:
    cloud = Hardware.Cloud
    volta, ampere = metrics_for(cloud.V100), metrics_for(cloud.A100)
    tensor = "sm__inst_executed_pipe_tensor.sum", "sm__ops_path_tensor_src_bf16_dst_fp32.sum"
    assert [tuple(each in found for each in tensor) for found in (volta, ampere)] == [
        *((True, False), (False, True))
    ]
    fp8 = "sm__ops_path_tensor_src_fp8.sum"
    assert [fp8 in metrics_for(each) for each in (cloud.A100, cloud.H100)] == [False, True]
    assert any("regex:" in each for each in metrics_for(cloud.B200))
    assert {"gpu__time_duration.sum", "dram__bytes_read.sum", "lts__t_bytes.sum"} <= set(volta)
    assert len(ampere) == len(set(ampere))
    old = {"Fermi", "Kepler", "Pascal"}
    new = [each for each in Hardware if each.vendor == "NVIDIA" and each.architecture not in old]
    assert [each.key for each in new if not capability_of(each)] == []


def test_a_tool_that_does_not_profile_the_device_is_refused() -> None:
    assert answered(profile_command, "profile_command") == []
