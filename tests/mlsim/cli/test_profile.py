"""The commands `mlsim profile` and `mlsim profile-command`."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from kept import text

from mlsim.cli.command import main

HOSTILE = '<script>alert(1)</script><img src=x onerror="alert(2)">&amp; \u202eevil'


@pytest.fixture
def counters(tmp_path: Path) -> Path:
    path = tmp_path / "counters.csv"
    path.write_text(text("counters.csv"))
    return path


def hostile(folder: Path) -> Path:
    """Write counters of a kernel whose name is a page's code."""
    path = folder / "counters.csv"
    path.write_text(text("counters.csv").replace("saxpy", HOSTILE.replace('"', '""')))
    return path


def test_a_profile_is_told_with_what_limits_it(counters: Path, capsys) -> None:
    """100 million times two operations and 1.2 GB in 1 ms; of a device's 2.039 TB/s if known."""
    assert main(["profile", str(counters), "--hardware", "A100"]) == 0
    told = capsys.readouterr().out
    assert "saxpy" in told
    assert "memory-bound. Main memory limits it: 1.2 TB/s, 59% of the roof" in told
    assert told.count("times faster") == 2
    assert main(["profile", str(counters), "--hardware", "A100", "--json"]) == 0
    (kernel,) = json.loads(capsys.readouterr().out)["kernels"]
    assert kernel["seconds"] == pytest.approx(1e-3)
    assert kernel["intensity"] == pytest.approx(2e8 / 1.2e9)
    assert len(kernel["remedies"]) == 2
    assert main(["profile", str(counters)]) == 0
    told = capsys.readouterr().out
    assert "200 MFLOP" in told
    assert "Give hardware" in told
    assert main(["profile", str(counters), "--json"]) == 0
    counters.write_text("hello\n")
    assert main(["profile", str(counters)]) == 1
    assert "this is no profile" in capsys.readouterr().err
    asked = ["profile-command", "train.py", "--tool", "ncu", "--hardware"]
    assert main([*asked, "A100"]) == 0
    assert "sm__ops_path_tensor_src_bf16_dst_fp32.sum" in capsys.readouterr().out
    assert main([*asked, "TPUv4"]) == 1


def test_a_report_without_a_known_device_has_all_but_the_roof(
    counters: Path, tmp_path: Path, capsys
) -> None:
    page = tmp_path / "report.html"
    assert main(["profile", str(counters), "--report", str(page)]) == 0
    told = capsys.readouterr().out
    assert told.startswith(f"wrote {page}, without a roof: the profile names no device.")
    shown = page.read_text("utf-8")
    assert "saxpy" in shown
    assert "1 ms (100%)" in shown
    assert "there is no roof to draw" in shown
    assert "<svg" not in shown
    assert main(["profile", str(counters), "--hardware", "A1000", "--report", "x.html"]) == 1


def test_a_log_of_nvidia_smi_is_told_by_gpu(counters: Path, tmp_path: Path, capsys) -> None:
    log = tmp_path / "gpu.csv"
    log.write_text(text("nvidia_smi.csv"))
    assert main(["profile", str(log)]) == 0
    told = capsys.readouterr().out
    assert "GPU 0 (Tesla T4): 3 readings\n  busy       97% in the median, at most 99%" in told
    assert "memory     1 GiB in the median, at most 1 GiB of 15 GiB" in told
    assert "GPU 1 (Tesla T4): 1 readings" in told
    assert main(["profile", str(log), "--json"]) == 0
    assert [each["busy"] for each in json.loads(capsys.readouterr().out)] == [0.37, 0.97, 0, 0.99]
    assert main(["profile", str(log), str(counters)]) == 1
    assert "read_nvidia_smi" in capsys.readouterr().err
    log.write_text(text("nvidia_smi.csv").replace("97 %", "97x %"))
    assert main(["profile", str(log)]) == 1
    assert f"{log}: nvidia-smi, line 3: '97x %' is no number" in capsys.readouterr().err


def test_what_the_counters_of_perf_tell_is_shown(tmp_path: Path, capsys) -> None:
    file = tmp_path / "perf.txt"
    file.write_text(text("perf_stat.txt"))
    assert main(["profile", str(file)]) == 0
    told = capsys.readouterr().out
    for each in (
        "1.5 instructions in each cycle (IPC).",
        "2 cores busy on average.",
        "1.00% of branches are branch-misses.",
        # 2.5 million lines of 64 bytes in half a second
        "160 MB from main memory at least (320 MB/s)",
    ):
        assert each in told
    assert "cache-references" not in told
    file.write_text(text("perf_stat.txt").replace("4,500,000,000", "<not supported>"))
    assert main(["profile", str(file)]) == 0
    assert "IPC" not in capsys.readouterr().out


def test_two_files_are_joined_in_either_order(counters: Path, tmp_path: Path, capsys) -> None:
    times = tmp_path / "times.csv"
    times.write_text('"Name","Calls","TotalDurationNs"\n"saxpy",2,4000000\n')
    for files in ([counters, times], [times, counters]):
        assert main(["profile", *map(str, files), "--hardware", "A100"]) == 0
        assert "4 ms      2    400 MFLOP" in capsys.readouterr().out
    # What only moves is counted as well.
    counters.write_text(text("counters.csv").replace('"100000000"', '"0"'))
    assert main(["profile", str(counters), str(times), "--hardware", "A100"]) == 0
    assert "4 ms      2    " in capsys.readouterr().out
    assert main(["profile", str(times), str(times)]) == 1
    assert "times alone" in capsys.readouterr().err


def test_a_report_is_one_page_without_script_or_network(tmp_path: Path, capsys) -> None:
    path, page = hostile(tmp_path), tmp_path / "report.html"
    assert main(["profile", str(path), "--hardware", "A100", "--report", str(page)]) == 0
    shown = page.read_text(encoding="utf-8")
    assert "<script" not in shown
    assert "<img" not in shown
    assert "\u202e" not in shown
    assert "&lt;script&gt;alert(1)" in shown
    for outside in ("http:", "https:", "src=", "url(", "@import", "<link"):
        assert outside not in shown.replace("img src=x", ""), outside
    assert "default-src 'none'" in shown
    assert "prefers-color-scheme:dark" in shown
    assert '<html lang="en">' in shown
    assert 'role="img"' in shown
    assert "memory-bound" in shown
    assert main(["profile", str(path), "--hardware", "A100", "--report", "no/such/x.html"]) == 1


@pytest.mark.browser
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_report_is_accessible_and_asks_for_nothing(tmp_path: Path, scheme: str) -> None:
    sync_api = pytest.importorskip("playwright.sync_api")
    from axe import axe_script

    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    if chromium is None:
        pytest.skip("needs Chromium")
    path, page = hostile(tmp_path), tmp_path / "report.html"
    main(["profile", str(path), "--hardware", "A100", "--report", str(page)])
    with sync_api.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        tab = browser.new_context(color_scheme=scheme, bypass_csp=True).new_page()
        asked: list[str] = []
        tab.on("request", lambda request: asked.append(request.url))
        tab.goto(page.as_uri())
        assert asked == [page.as_uri()]
        tab.evaluate(axe_script())
        found = tab.evaluate("() => axe.run()")["violations"]
        browser.close()
    assert [each["id"] for each in found] == []
