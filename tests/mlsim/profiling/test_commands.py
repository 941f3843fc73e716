"""Commands that profile a script: they can be pasted into a shell, and suit the device."""

from __future__ import annotations

import ast
import shlex
import subprocess

import pytest

from mlsim import Hardware
from mlsim.errors import InvalidValueError, UnknownNameError
from mlsim.profiling import TOOLS, profile_command
from mlsim.profiling.commands import capability_of, metrics_for

SHELL = [tool for tool in TOOLS if tool != "torch"]


@pytest.mark.parametrize("tool", SHELL)
def test_a_shell_understands_the_commands(tool: str) -> None:
    device = "MI300X" if tool == "rocprof" else "A100"
    text = profile_command(["train.py", "--name", "a b; rm $HOME"], tool=tool, hardware=device)
    done = subprocess.run(["bash", "-n"], input=text, text=True, capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    # The arguments reach the script as they were given.
    assert shlex.join(["python3", "train.py", "--name", "a b; rm $HOME"]) in text


def test_the_code_for_torch_is_python() -> None:
    tree = ast.parse(profile_command("train.py", tool="torch"))
    calls = {ast.unparse(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    assert {"schedule", "profile", "profiler.step", "done.export_chrome_trace"} <= calls
    assert "CUDA" in ast.unparse(tree)
    assert "CUDA" not in profile_command("train.py", tool="torch", hardware="EPYC9654")


def test_nsight_compute_gets_the_metrics_of_the_architecture() -> None:
    volta, ampere = metrics_for(Hardware.Cloud.V100), metrics_for(Hardware.Cloud.A100)
    assert "sm__inst_executed_pipe_tensor.sum" in volta
    assert "sm__ops_path_tensor_src_bf16_dst_fp32.sum" in ampere
    assert "sm__ops_path_tensor_src_fp8.sum" not in ampere
    assert "sm__ops_path_tensor_src_fp8.sum" in metrics_for(Hardware.Cloud.H100)
    assert any("regex:" in each for each in metrics_for(Hardware.Cloud.B200))
    for each in ("gpu__time_duration.sum", "dram__bytes_read.sum", "lts__t_bytes.sum"):
        assert each in volta
    assert len(ampere) == len(set(ampere))


def test_every_nvidia_device_since_volta_has_a_compute_capability() -> None:
    old = {"Fermi", "Kepler", "Pascal"}
    for device in Hardware:
        if device.vendor == "NVIDIA" and device.architecture not in old:
            assert capability_of(device), device.key


def test_a_tool_that_does_not_profile_the_device_is_refused() -> None:
    with pytest.raises(InvalidValueError, match="Use rocprof"):
        profile_command("a.py", tool="ncu", hardware="MI300X")
    with pytest.raises(InvalidValueError, match="Use ncu or nsys"):
        profile_command("a.py", tool="rocprof", hardware="A100")
    with pytest.raises(InvalidValueError, match="needs hardware"):
        profile_command("a.py", tool="ncu")
    with pytest.raises(InvalidValueError, match="needs Volta or later"):
        profile_command("a.py", tool="ncu", hardware="P100")
    with pytest.raises(UnknownNameError, match="no tool is called 'nsight'"):
        profile_command("a.py", tool="nsight")
    with pytest.raises(InvalidValueError, match="give the script"):
        profile_command("", tool="perf")
