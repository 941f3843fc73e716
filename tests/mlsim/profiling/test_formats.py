"""Formats of five tools in small: figures worked by hand, and what each lacks."""

from __future__ import annotations

import gzip
import json
import sqlite3
from pathlib import Path

import pytest

from mlsim.errors import DataFileError, InvalidValueError, NotMeasuredError
from mlsim.profiling import MeasuredProfile, combine, join, read_profile

THREAD = "smsp__sass_thread_inst_executed_op_{}_pred_on.sum"
LONG = '"ID","Kernel Name","CC","Section Name","Metric Name","Metric Unit","Metric Value"\n'


@pytest.fixture
def put(tmp_path: Path):
    """Return what writes a file and reads it as a profile."""

    def write(text: str | bytes, name: str = "profile.csv", **options) -> MeasuredProfile:
        path = tmp_path / name
        path.write_bytes(text.encode() if isinstance(text, str) else text)
        return read_profile(path, **options)

    return write


def long(metrics: dict[str, tuple[str, str]], name: str = "k", cc: str = "8.0") -> str:
    rows = (
        f'"0","{name}","{cc}","Command line profiler metrics","{metric}","{unit}","{value}"\n'
        for metric, (unit, value) in metrics.items()
    )
    return LONG + "".join(rows)


def scalar(kind: str, add: float, mul: float, fma: float) -> dict[str, tuple[str, str]]:
    counts = zip(("add", "mul", "fma"), (add, mul, fma), strict=True)
    return {THREAD.format(kind + op): ("inst", f"{count:,.0f}") for op, count in counts}


TIME = {"gpu__time_duration.sum": ("usecond", "2,000.00")}


def test_the_seeds_command_gives_work_bytes_and_intensity(put) -> None:
    sectors = {
        "dram__sectors_read.sum": ("sector", "3,000,000"),
        "dram__sectors_write.sum": ("sector", "1,000,000"),
    }
    kernel = put(long(scalar("f", 1e6, 2e6, 62.5e6) | sectors | TIME)).kernels[0]
    # 1 + 2 + 2 x 62.5 million; 4 million sectors of 32 bytes; 2 ms.
    assert kernel.flop_count == 128e6
    assert kernel.byte_count() == 128e6
    assert kernel.intensity.to("FLOP/B").magnitude == 1.0
    assert kernel.rate.to("GFLOP/s").magnitude == pytest.approx(64)
    assert "tensor cores were not counted" in kernel.missing["tensor"]


@pytest.mark.parametrize(
    ("unit", "value", "seconds"),
    [
        ("nsecond", "1,500", 1.5e-6),
        ("ns", "1500", 1.5e-6),
        ("usecond", "1.50", 1.5e-6),
        ("us", "1.50", 1.5e-6),
        ("msecond", "12.25", 12.25e-3),
        ("ms", "12.25", 12.25e-3),
        ("second", "2.5", 2.5),
        ("s", "2.5", 2.5),
    ],
)
def test_units_of_time(put, unit: str, value: str, seconds: float) -> None:
    text = long({"gpu__time_duration.sum": (unit, value), "dram__bytes.sum": ("Kbyte", "1.5")})
    kernel = put(text).kernels[0]
    assert kernel.seconds == pytest.approx(seconds)
    assert kernel.byte_count() == 1500


def test_a_unit_that_is_unknown_or_of_another_kind_is_refused(put) -> None:
    with pytest.raises(DataFileError, match="the unit 'furlong'"):
        put(long({"gpu__time_duration.sum": ("furlong", "1")}))
    with pytest.raises(DataFileError, match="has a unit of bytes"):
        put(long({"gpu__time_duration.sum": ("byte", "100")}))


def test_tensor_work_by_format_without_doubles(put) -> None:
    base = "sm__ops_path_tensor_src_{}.sum"
    kernel = put(
        long(
            {
                base.format("bf16_dst_fp32"): ("", "4,096"),
                base.format("bf16_dst_fp32_sparsity_off"): ("", "4,096"),
                base.format("bf16_dst_fp32_sparsity_on"): ("", "0"),
                base.format("fp16_dst_fp16"): ("", "100"),
                base.format("fp16_dst_fp32"): ("", "200"),
                base.format("int8"): ("", "50"),
            }
            | scalar("f", 1, 1, 1)
        )
    ).kernels[0]
    assert kernel.operations == {
        "fp32": 4,
        "tensor bf16": 4096,
        "tensor fp16": 300,
        "tensor int8": 50,
    }
    # Integers are no FLOP.
    assert kernel.flop_count == 4400


@pytest.mark.parametrize(
    ("name", "cc", "flops"),
    [
        # 2 x 8 x 8 x 4, 2 x 16 x 8 x 8, 2 x 16 x 8 x 16 for each of a thousand instructions.
        ("volta_fp16_s884gemm_fp16_128x64_ldg8_f2f_nn", "7.0", 512e3),
        ("turing_fp16_s1688gemm_fp16_128x64", "7.5", 2048e3),
        ("ampere_fp16_s16816gemm_fp16_64x64", "8.0", 4096e3),
    ],
)
def test_tensor_instructions_count_by_their_shape(put, name: str, cc: str, flops: float) -> None:
    counted = {"sm__inst_executed_pipe_tensor.sum": ("inst", "1,000")} | scalar("f", 0, 0, 0)
    assert put(long(counted, name, cc)).kernels[0].flop_count == flops


def test_tensor_instructions_of_an_unknown_shape_are_refused(put) -> None:
    counted = {"sm__inst_executed_pipe_tensor.sum": ("inst", "1,000")} | scalar("f", 0, 0, 5)
    kernel = put(long(counted, "my_kernel", "8.0")).kernels[0]
    with pytest.raises(NotMeasuredError, match="it used the tensor cores"):
        _ = kernel.flops
    # With the counter at zero nothing is lacking.
    idle = counted | {"sm__inst_executed_pipe_tensor.sum": ("inst", "0")}
    assert put(long(idle, "my_kernel", "8.0")).kernels[0].flop_count == 10
    assert put(long(scalar("f", 0, 0, 5), "my_kernel", "6.1")).kernels[0].missing.keys() == {
        "seconds",
        "dram",
    }


@pytest.mark.parametrize(
    "name",
    [
        "flash_fwd_kernel",
        "cutlass_80_tensorop_bf16_s16816gemm",
        "sm80_xmma_fprop_tf32f32",
        "nvjet_x",
    ],
)
def test_a_name_that_shows_tensor_work_is_refused_without_its_counter(put, name: str) -> None:
    kernel = put(long(scalar("f", 10, 10, 10), name)).kernels[0]
    with pytest.raises(NotMeasuredError, match="its name shows work on tensor cores"):
        _ = kernel.flops


def test_a_product_without_any_scalar_work_used_tensor_cores(put) -> None:
    with pytest.raises(NotMeasuredError, match="its name shows a product"):
        _ = put(long(scalar("f", 0, 0, 0), "matmul_kernel")).flops
    assert put(long(scalar("f", 0, 0, 8), "matmul_naive")).flops.magnitude == 16


def test_two_of_three_instructions_are_no_count(put) -> None:
    counted = scalar("f", 5, 5, 5)
    del counted[THREAD.format("ffma")]
    with pytest.raises(NotMeasuredError, match=r"ffma_pred_on\.sum is not in the file"):
        _ = put(long(counted)).flops


def test_a_count_that_other_launches_have_is_lacking(put) -> None:
    tensor = {"sm__ops_path_tensor_src_bf16_dst_fp32.sum": ("", "4,096")}
    whole = long(scalar("f", 1, 1, 1) | tensor, "one")
    part = long(scalar("f", 1, 1, 1), "two").removeprefix(LONG).replace('"0","two"', '"1","two"')
    extra = long({"sm__x.sum": ("", "1")}, "two").removeprefix(LONG).replace('"0"', '"1"')
    profile = put(whole + part + extra)
    assert profile.kernel("one").flop_count == 4100
    with pytest.raises(NotMeasuredError, match="it lacks sm__ops_path_tensor_src_bf16"):
        _ = profile.kernel("two").flops


def test_half_precision_works_on_pairs_and_constants_are_no_work(put) -> None:
    assert put(long(scalar("h", 1, 2, 3), "hadd2_half")).kernels[0].flop_count == 2 * (1 + 2 + 6)
    moves = put(long(scalar("f", 1, 0, 0) | scalar("h", 0, 0, 9), "add_float"))
    assert moves.flops.magnitude == 1
    assert "load constants" in moves.kernels[0].missing["fp16"]
    assert any("not counted as work" in note for note in moves.notes)


def test_rates_by_cycle_and_second_become_counts(put) -> None:
    per = "smsp__sass_thread_inst_executed_op_{}_pred_on.sum.per_cycle_elapsed"
    kernel = put(
        long(
            {
                "gpu__time_duration.sum": ("us", "100"),
                "smsp__cycles_elapsed.avg.per_second": ("Ghz", "1.5"),
                per.format("fadd"): ("inst/cycle", "10"),
                per.format("fmul"): ("inst/cycle", "20"),
                "derived__smsp__sass_thread_inst_executed_op_ffma_pred_on_x2": ("inst", "600"),
                # The peak of the device, which is no count of the kernel.
                "derived__sm__sass_thread_inst_executed_op_ffma_pred_on_x2": ("inst", "27648"),
                "dram__bytes.sum.per_second": ("Gbyte/second", "500"),
            }
        )
    ).kernels[0]
    # 150,000 cycles of 10 + 20 + 600 operations; 100 us at 500 GB/s.
    assert kernel.flop_count == pytest.approx(150_000 * 630)
    assert kernel.byte_count() == pytest.approx(50e6)


PAGE = """==PROF== Connected to process 7 (/usr/bin/python3)
==PROF== Profiling "add": 0%....50%....100% - 3 passes
  add(float *, int) (8, 1, 1)x(64, 1, 1), Context 1, Stream 7, Device 0, CC 8.0
    Section: Command line profiler metrics
    -------------------------------------------------------- ----------- ------------
    Metric Name                                              Metric Unit Metric Value
    -------------------------------------------------------- ----------- ------------
    dram__sectors_read.sum                                        sector    3,000,000
    dram__sectors_write.sum                                       sector    1,000,000
    smsp__sass_thread_inst_executed_op_fadd_pred_on.sum             inst    1,000,000
    smsp__sass_thread_inst_executed_op_ffma_pred_on.sum             inst   62,500,000
    smsp__sass_thread_inst_executed_op_fmul_pred_on.sum             inst    2,000,000
    -------------------------------------------------------- ----------- ------------

  void gemm<float>(T1 *), 2021-Jan-01 12:00:00, Context 1, Stream 7
    Section: GPU Speed Of Light
    -------------------------------------------------------- ----------- ------------
    Duration                                                     usecond        12.50
    -------------------------------------------------------- ----------- ------------
"""


def test_the_page_that_the_seeds_command_prints(put) -> None:
    add, gemm = sorted(put(PAGE, "logs_example").kernels, key=lambda each: each.name)
    assert add.flop_count == 128e6
    assert add.byte_count() == 128e6
    assert add.facts["grid"] == "(8, 1, 1)"
    assert gemm.seconds == pytest.approx(12.5e-6)
    assert gemm.name == "void gemm<float>(T1 *)"
    with pytest.raises(DataFileError, match="does not fit its columns"):
        put(PAGE.replace("sector    3,000,000", "sector    3,000,000,000,000"), "wide")


def test_the_page_of_details_in_words(put) -> None:
    rows = [
        ("GPU Speed Of Light Throughput", "Duration", "usecond", "14,887.28"),
        ("GPU Speed Of Light Throughput", "Memory Throughput", "%", "47.80"),
        ("Memory Workload Analysis", "Memory Throughput", "Gbyte/second", "100.00"),
        ("Occupancy", "Achieved Occupancy", "%", "33.10"),
        ("Launch Statistics", "Registers Per Thread", "register/thread", "112"),
    ]
    text = LONG + "".join(f'"0","attn","8.0","{a}","{b}","{c}","{d}"\n' for a, b, c, d in rows)
    kernel = put(text).kernels[0]
    assert kernel.seconds == pytest.approx(14.88728e-3)
    assert kernel.byte_count() == pytest.approx(14.88728e-3 * 100e9)
    assert kernel.facts["occupancy"] == 33.1


def test_a_summary_has_means_times_launches(put) -> None:
    text = (
        '"Process ID","Kernel Name","Invocations","Section Name","Metric Name","Metric Unit",'
        '"Minimum","Maximum","Average"\n'
        '"1","k","3","Command line profiler metrics","gpu__time_duration.sum","us","1","3","2"\n'
        '"1","k","3","Command line profiler metrics","dram__bytes.sum","byte","10","30","20"\n'
    )
    kernel = put(text).kernels[0]
    assert (kernel.calls, kernel.seconds, kernel.byte_count()) == (3, pytest.approx(6e-6), 60)


def test_a_wide_table_with_units_in_its_header(put) -> None:
    text = (
        "ID,Kernel Name,gpu__time_duration.sum [us],dram__bytes.sum [Mbyte]\n"
        "0,saxpy,4.5,2.25\n1,saxpy,5.5,2.25\n"
    )
    kernel = put(text).kernels[0]
    assert (kernel.calls, kernel.seconds) == (2, pytest.approx(10e-6))
    assert kernel.byte_count() == 4.5e6


@pytest.mark.parametrize("sign", [";", "\t"])
def test_other_locales_and_separators(put, sign: str) -> None:
    header = sign.join(("ID", "Kernel Name", "gpu__time_duration.sum", "dram__bytes.sum"))
    text = f"{header}\n{sign * 2}us{sign}byte\n0{sign}a{sign}4,50{sign}1.862.653.056\n"
    kernel = put(text).kernels[0]
    assert kernel.seconds == pytest.approx(4.5e-6)
    assert kernel.byte_count() == 1_862_653_056


def test_a_number_that_could_be_two_is_refused(put) -> None:
    text = long({"gpu__time_duration.sum": ("us", "1.234")})
    with pytest.raises(DataFileError, match="could be a fraction or thousands"):
        put(text)
    assert put(text, decimal=".").kernels[0].seconds == pytest.approx(1.234e-6)
    assert put(text, decimal=",").kernels[0].seconds == pytest.approx(1234e-6)
    mixed = long({"gpu__time_duration.sum": ("us", "1,5"), "dram__bytes.sum": ("byte", "2.5")})
    with pytest.raises(DataFileError, match="two locales"):
        put(mixed)


def test_reports_of_nsight_systems_in_one_file(put) -> None:
    text = """
Processing [profile.sqlite] with [cuda_gpu_kern_sum.py]...
Time (%),Total Time (ns),Instances,Avg (ns),Med (ns),Min (ns),Max (ns),StdDev (ns),Name
60.0,6000,3,2000.0,2000.0,1000,3000,0.0,"void add<float>(int, float*)"
40.0,4000,1,4000.0,4000.0,4000,4000,0.0,ncclDevKernel_AllReduce_Sum_f32_RING_LL

Processing [profile.sqlite] with [cuda_gpu_mem_time_sum.py]...
Time (%),Total Time (ns),Count,Avg (ns),Med (ns),Min (ns),Max (ns),StdDev (ns),Operation
100.0,800,2,400.0,400.0,300,500,0.0,[CUDA memcpy Host-to-Device]

Processing [profile.sqlite] with [cuda_gpu_mem_size_sum.py]...
Total (MB),Count,Avg (MB),Med (MB),Min (MB),Max (MB),StdDev (MB),Operation
1.500,2,0.750,0.750,0.500,1.000,0.0,[CUDA memcpy Host-to-Device]

Processing [profile.sqlite] with [cuda_api_sum.py]...
Time (%),Total Time (ns),Num Calls,Avg (ns),Med (ns),Min (ns),Max (ns),StdDev (ns),Name
90.0,20000,4,5000.0,5000.0,4000,6000,0.0,cudaLaunchKernel
10.0,1000,1,1000.0,1000.0,1000,1000,0.0,cudaMalloc
"""
    profile = put(text)
    assert [(each.short, each.calls) for each in profile.kernels] == [
        ("add", 3),
        ("ncclDevKernel_AllReduce_Sum_f32_RING_LL", 1),
    ]
    (copy,) = profile.copies
    assert (copy.name, copy.calls, copy.bytes) == ("host to device", 2, 1.5e6)
    assert copy.seconds == pytest.approx(800e-9)
    assert [each.calls for each in profile.exchanges] == [1]
    assert profile.launches is not None
    assert (profile.launches.calls, profile.launches.seconds) == (4, pytest.approx(20e-6))
    assert profile.launches.usual == pytest.approx(5e-6)
    assert profile.launches.longest == pytest.approx(6e-6)


def test_a_report_of_nsight_systems_in_columns(put) -> None:
    text = """
 ** CUDA GPU Kernel Summary (cuda_gpu_kern_sum):

 Time (%)  Total Time (ns)  Instances  Avg (ns)   Name
 --------  ---------------  ---------  --------  ------------------------------
     75.0            6,000          3   2,000.0  void add<float>(int, float *)
     25.0            2,000          1   2,000.0  mul

"""
    profile = put(text)
    assert profile.time.to("ns").magnitude == pytest.approx(8000)
    assert profile.kernels[0].name == "void add<float>(int, float *)"


def test_a_trace_of_nsight_systems_has_gaps(put) -> None:
    text = (
        "Start (ns),Duration (ns),CorrId,GrdX,GrdY,GrdZ,BlkX,BlkY,BlkZ,Bytes (MB),Device,Strm,Name\n"
        "1000,500,1,8,1,1,128,1,1,,NVIDIA A30 (0),7,add\n"
        "1200,400,2,8,1,1,128,1,1,,NVIDIA A30 (0),8,add\n"
        "4000,1000,3,,,,,,,2.000,NVIDIA A30 (0),7,[CUDA memcpy DtoH]\n"
    )
    profile = put(text)
    (activity,) = profile.activity
    # 600 ns of two kernels that overlap, a gap of 2,400, and a copy of 1,000.
    assert activity.span == pytest.approx(4000e-9)
    assert activity.busy == pytest.approx(1600e-9)
    assert activity.computing == pytest.approx(600e-9)
    assert activity.exposed == pytest.approx(1000e-9)
    assert activity.gaps[0] == (pytest.approx(600e-9), pytest.approx(2400e-9))
    assert profile.device_name == "NVIDIA A30"
    assert profile.copies[0].bytes == 2e6


def test_totals_that_do_not_agree_are_refused(put) -> None:
    header = "Time (%),Total Time (ns),Instances,Avg (ns),Name\n"
    with pytest.raises(DataFileError, match="don't agree"):
        put(header + "100.0,6000,3,200.0,add\n")


def export(path: Path) -> Path:
    """Make a small export of Nsight Systems."""
    with sqlite3.connect(path) as database:
        database.executescript("""
            CREATE TABLE StringIds (id INTEGER, value TEXT);
            INSERT INTO StringIds VALUES (1, 'void add<float>(float*)'), (2, 'cudaLaunchKernel');
            CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER, end INTEGER, deviceId INTEGER,
                demangledName INTEGER, correlationId INTEGER, gridX INTEGER, gridY INTEGER,
                gridZ INTEGER, blockX INTEGER, blockY INTEGER, blockZ INTEGER);
            INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES
                (1000, 2000, 0, 1, 5, 8, 1, 1, 64, 1, 1), (3000, 4500, 0, 1, 6, 8, 1, 1, 64, 1, 1);
            CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (start INTEGER, end INTEGER, deviceId INTEGER,
                bytes INTEGER, copyKind INTEGER);
            INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES (0, 500, 0, 4096, 1);
            CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INTEGER, end INTEGER, nameId INTEGER,
                correlationId INTEGER);
            INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (700, 800, 2, 5), (2200, 2300, 2, 6);
            CREATE TABLE TARGET_INFO_GPU (name TEXT);
            INSERT INTO TARGET_INFO_GPU VALUES ('NVIDIA A30');
        """)
    database.close()
    return path


def test_an_export_is_read_and_never_written(tmp_path: Path) -> None:
    path = export(tmp_path / "a b#?.sqlite")
    path.chmod(0o444)
    before = path.read_bytes()
    packed = tmp_path / "packed.sqlite.gz"
    packed.write_bytes(gzip.compress(before))
    for each in (path, packed):
        profile = read_profile(each)
        (kernel,) = profile.kernels
        assert (kernel.calls, kernel.seconds) == (2, pytest.approx(2500e-9))
        assert kernel.facts["grid"] == "(8, 1, 1)"
        assert profile.launches is not None
        # 300 ns from one launch to its kernel, 800 from the other.
        assert profile.launches.queued == pytest.approx(550e-9)
        assert profile.activity[0].gaps[0][1] == pytest.approx(1000e-9)
        assert profile.copies[0].bytes == 4096
        assert profile.device_name == "NVIDIA A30"
    assert path.read_bytes() == before
    assert sorted(each.name for each in tmp_path.iterdir()) == ["a b#?.sqlite", "packed.sqlite.gz"]


def test_a_database_that_is_a_program_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "trap.sqlite"
    with sqlite3.connect(path) as database:
        database.execute(
            "CREATE VIEW CUPTI_ACTIVITY_KIND_KERNEL AS WITH RECURSIVE n(start) AS "
            "(SELECT 1 UNION ALL SELECT start FROM n) SELECT start, start AS end FROM n"
        )
    database.close()
    with pytest.raises(DataFileError, match="no GPU activity"):
        read_profile(path)


def trace(*events: dict, **beside) -> str:
    return json.dumps({**beside, "traceEvents": list(events)})


def event(cat: str, name: str, ts: float, dur: float, **args) -> dict:
    return {
        "ph": "X",
        "cat": cat,
        "name": name,
        "ts": ts,
        "dur": dur,
        "pid": 1,
        "tid": 1,
        "args": args,
    }


def test_operators_of_a_gpu_have_the_time_of_their_kernels(put) -> None:
    dims = {"Input Dims": [[8, 16], [16, 4]], "Input type": ["float", "float"]}
    profile = put(
        trace(
            event("cpu_op", "aten::linear", 0, 50, **{"External id": 1}),
            event("cpu_op", "aten::mm", 10, 30, **{"External id": 2}, **dims),
            event("kernel", "sgemm", 60, 5, **{"External id": 2}, correlation=9),
            event("kernel", "splitK", 65, 3, **{"External id": 2}, correlation=10),
            event("kernel", "ncclKernel_AllReduce", 70, 10, correlation=11),
            event("cuda_runtime", "cudaLaunchKernel", 20, 4, correlation=9),
            deviceProperties=[{"name": "NVIDIA A30", "computeMajor": 8, "computeMinor": 0}],
        ),
        "trace.json",
    )
    (operator,) = profile.operators
    assert (operator.name, operator.calls) == ("aten::mm", 1)
    assert operator.flop_count == 2 * 8 * 16 * 4
    assert operator.seconds == pytest.approx(8e-6)
    assert profile.activity[0].busy == pytest.approx(18e-6)
    assert profile.activity[0].exposed == pytest.approx(10e-6)
    assert profile.launches is not None
    assert profile.launches.queued == pytest.approx(40e-6)
    assert profile.device_facts == {"compute capability": "8.0"}


def test_an_array_of_events_and_a_gzipped_trace_are_read(put) -> None:
    kernel = event("kernel", "k", 0, 5)
    assert put(json.dumps([kernel]), "a.json").time.to("us").magnitude == pytest.approx(5)
    packed = gzip.compress(trace(kernel).encode())
    assert put(packed, "b.json.gz").time.to("us").magnitude == pytest.approx(5)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('{"traceEvents": [{"ph": "X", "cat": "kernel"', "the file ends within its events"),
        ('{"traceEvents": [{"a": 1} {"b": 2}]}', "no comma between"),
        ('{"traceEvents": [1]}', "stands where an event should"),
        ('{"traceEvents": [{"ph": "X", "cat": "kernel", "ts": 0, "dur": NaN}]}', "is no number"),
        ('{"other": [], "nodes": []}', "this JSON has other, nodes, and no traceEvents"),
        ('{"other": [', "it has no traceEvents"),
        (trace(event("kernel", "k", 0, -5)), "ends before it begins"),
        (trace({**event("kernel", "k", 0, 1), "dur": "x"}), "is no number"),
        (trace(), "neither kernels nor operators"),
    ],
)
def test_a_damaged_trace_is_refused(put, text: str, why: str) -> None:
    with pytest.raises(DataFileError, match=why):
        put(text, "trace.json")


def test_a_table_of_a_gpu_run(put) -> None:
    line = "  ".join("-" * size for size in (22, 12, 12, 12, 12, 12, 12))
    rows = [
        ("Name", "Self CPU", "CPU total", "Self CUDA", "CUDA total", "# of Calls", "Total GFLOPs"),
        ("aten::mm", "10.000us", "30.000us", "8.000ms", "8.000ms", "2", "16.000"),
        ("sgemm_kernel", "0.000us", "0.000us", "8.000ms", "8.000ms", "2", "--"),
    ]
    body = ["  ".join(f"{cell:>{22 if not at else 12}}" for at, cell in enumerate(r)) for r in rows]
    end = "Self CPU time total: 10.000us\nSelf CUDA time total: 8.000ms\n"
    text = "\n".join((line, body[0], line, *body[1:], line, end))
    profile = put(text, "table.txt")
    assert [each.name for each in profile.kernels] == ["sgemm_kernel"]
    assert profile.time.to("ms").magnitude == pytest.approx(8)
    (operator,) = profile.operators
    assert operator.rate.to("TFLOP/s").magnitude == pytest.approx(2)
    with pytest.raises(DataFileError, match="cut off"):
        put(text[: text.index("Self CPU time")], "cut.txt")


def table_of(*rows: tuple[str, ...], total: str) -> str:
    """Return a table as PyTorch prints it: a name that is too long shifts the names behind it."""
    dashes = "  ".join("-" * (30 if not at else 12) for at in range(len(rows[0])))
    body = ["  ".join(f"{cell:>{30 if not at else 12}}" for at, cell in enumerate(r)) for r in rows]
    end = f"Self CPU time total: 10.000us\nSelf CUDA time total: {total}\n"
    return "\n".join((dashes, body[0], dashes, *body[1:], dashes, end))


def test_a_name_that_is_longer_than_its_column_shifts_no_cell(put) -> None:
    """As PyTorch 2.4 to 2.10 print it: "CUDA time avg" has 13 letters, and its column 12."""
    names = (
        "Name",
        "CPU total",
        "Self CUDA",
        "CUDA total",
        "CUDA time avg",
        "CUDA Mem",
        "# of Calls",
    )
    first = table_of(
        names,
        ("aten::mm", "30.000us", "8.000ms", "8.000ms", "4.000ms", "1.45 Mb", "2"),
        ("sgemm_kernel", "0.000us", "8.000ms", "8.000ms", "4.000ms", "0 b", "2"),
        total="8.000ms",
    )
    (kernel,) = put(first, "table.txt").kernels
    assert (kernel.name, kernel.calls, kernel.seconds) == ("sgemm_kernel", 2, 0.008)
    # Another table behind it has totals of its own.
    second = table_of(names, ("k", "0.000us", "1.000ms", "1.000ms", "1.000ms", "0 b", "1"), total="1.000ms")  # fmt: skip
    both = put(first + "\n" + second.replace("CPU total", "Self CPU"), "two.txt")
    assert both.time.to("ms").magnitude == pytest.approx(8)
    assert [each.name for each in both.kernels] == ["sgemm_kernel"]
    assert any("Another table" in each for each in both.notes)


def test_statistics_traces_and_counters_of_rocprof(put) -> None:
    stats = '"Name","Calls","TotalDurationNs","AverageNs","Percentage"\n'
    profile = put(stats + '"body(float*, int) [clone .kd]",10,261124944,26112494,100.0\n')
    assert profile.kernels[0].name == "body(float*, int)"
    assert profile.time.to("ns").magnitude == pytest.approx(261_124_944)
    with pytest.raises(DataFileError, match="calls of the host"):
        put(stats + "hipMemcpy,2,583182462,291591231,99.8\n")
    wide = (
        "Index,KernelName,gpu-id,grd,wgr,FETCH_SIZE,WRITE_SIZE,SQ_INSTS_VALU_ADD_F32,"
        "SQ_INSTS_VALU_MUL_F32,SQ_INSTS_VALU_FMA_F32,SQ_INSTS_VALU_MFMA_MOPS_F16,BeginNs,EndNs\n"
        '0,"gemm.kd",0,1024,256,100.0,28.0,10,20,30,40,1000,3000\n'
    )
    kernel = put(wide).kernels[0]
    # 64 lanes x (10 + 20 + 60), 40 blocks of 512; 128 KiB; 2 us.
    assert kernel.operations == {"fp32": 5760, "tensor fp16": 20480}
    assert kernel.byte_count() == 128 * 1024
    assert kernel.seconds == pytest.approx(2e-6)
    with pytest.raises(DataFileError, match="ends before it begins"):
        put(wide.replace("1000,3000", "3000,1000"))


def test_bytes_of_an_amd_gpu_follow_from_requests_of_its_cache(put) -> None:
    """A vector of 1,048,576 doubles is read and written: 8,388,608 bytes each way."""
    start = "Dispatch_ID,GPU_ID,Grid_Size,Kernel_Name,"
    mi200 = (
        f"{start}TCC_EA_RDREQ_sum,TCC_EA_RDREQ_32B_sum,TCC_EA_WRREQ_sum,TCC_EA_WRREQ_64B_sum,"
        'Start_Timestamp,End_Timestamp\n0,2,1048576,"copy(double*)",131082.0,4.0,131074.0,131072.0,'
        "100000,106880\n"
    )
    kernel = put(mi200).kernels[0]
    # 4 reads of 32 bytes, 131,078 of 64; 2 writes of 32 bytes, 131,072 of 64.
    assert kernel.byte_count() == 4 * 32 + 131_078 * 64 + 2 * 32 + 131_072 * 64
    assert kernel.seconds == pytest.approx(6.88e-6)
    mi300 = (
        mi200.replace("TCC_EA_", "TCC_EA0_")
        .replace("EA0_WRREQ_64B_sum,", "EA0_WRREQ_64B_sum,TCC_BUBBLE_sum,")
        .replace("131082.0,4.0,131074.0,131072.0,", "65617.0,0.0,131072.0,131072.0,65536.0,")
    )
    # Reads of 128 bytes are counted apart: 65,536 of them, and 81 of 64.
    assert put(mi300).kernels[0].byte_count() == 65_536 * 128 + 81 * 64 + 131_072 * 64
    without = mi300.replace("TCC_BUBBLE_sum,", "").replace(",65536.0,", ",")
    with pytest.raises(NotMeasuredError, match="TCC_BUBBLE_sum is not in the file"):
        put(without).kernels[0].bytes()
    with pytest.raises(NotMeasuredError, match="more requests of one size than of all"):
        put(mi200.replace("131082.0", "2.0")).kernels[0].bytes()


def test_a_file_without_a_last_line_end_is_read_where_no_digit_that_counts_may_be_lost(put) -> None:
    stats = '"Name","Calls","TotalDurationNs","AverageNs","Percentage"\n"body",10,260,26,52.3'
    assert put(stats).time.to("ns").magnitude == pytest.approx(260)
    spans = "Kind,Agent_Id,Kernel_Name,Start_Timestamp,End_Timestamp\nKERNEL_DISPATCH,1,k,1000,2500"
    assert put(spans).time.to("ns").magnitude == pytest.approx(1500)
    with pytest.raises(DataFileError, match="its last number may be cut off"):
        put(spans[:-1])
    long = "ID,Kernel Name,Metric Name,Metric Unit,Metric Value\n"
    long += "0,k,gpu__time_duration.sum,ns,2000\n0,k,SM [%],%,14.6"
    assert put(long).time.to("ns").magnitude == pytest.approx(2000)
    with pytest.raises(DataFileError, match="its last number may be cut off"):
        put(long + "\n0,k,dram__bytes.sum,byte,12345")


def test_bytes_without_a_unit_say_how_to_get_one(put) -> None:
    wide = "ID,Kernel Name,gpu__time_duration.sum,dram__bytes.sum\n0,k,2000,4096\n"
    with pytest.raises(NotMeasuredError, match=r"has dram__bytes.sum and no unit for it"):
        put(wide).kernels[0].bytes()


def test_work_of_somebody_elses_operator_is_not_taken_for_none(put) -> None:
    def run(name: str) -> MeasuredProfile:
        one = event("cpu_op", name, 0, 5, **{"Input Dims": [[4, 4]]})
        two = event("cpu_op", "aten::mm", 10, 5, **{"Input Dims": [[4, 8], [8, 2]]})
        return put(trace(one, two), "trace.json")

    # 2 x 4 x 8 x 2 operations of the product, and none of ReLU.
    assert run("aten::relu").flops.magnitude == 128
    for name in ("fbgemm::f8f8bf16_rowwise", "aten::_weight_int4pack_mm", "triton_tem_fused_mm_3"):
        with pytest.raises(NotMeasuredError, match="not counted from shapes"):
            _ = run(name).flops


def test_passes_of_rocprofv3_are_put_together(put) -> None:
    header = "Correlation_Id,Dispatch_Id,Agent_Id,Kernel_Name,Counter_Name,Counter_Value,Start_Timestamp,End_Timestamp\n"

    def one(counters: dict[str, float], name: str) -> MeasuredProfile:
        rows = (f'1,1,4,"gemm",{key},{value},1000,3000\n' for key, value in counters.items())
        return put(header + "".join(rows), name)

    passes = [
        one({"FETCH_SIZE": 1.0, "WRITE_SIZE": 1.0}, "a.csv"),
        one({f"SQ_INSTS_VALU_{op}_F16": 0.0 for op in ("ADD", "MUL", "FMA")}, "b.csv"),
        one({f"SQ_INSTS_VALU_{op}_F32": 1.0 for op in ("ADD", "MUL", "FMA")}, "c.csv"),
        one({"SQ_INSTS_VALU_MFMA_MOPS_BF16": 2.0}, "d.csv"),
    ]
    # One pass alone saw nothing, and must not say that there was nothing.
    with pytest.raises(NotMeasuredError, match="single precision was not counted"):
        _ = passes[1].flops
    whole = combine(passes)
    assert whole.flops.magnitude == 64 * 4 + 2 * 512
    assert whole.intensity.magnitude == (64 * 4 + 1024) / 2048


PERF = """
 Performance counter stats for './triad':

          1,255.54 msec task-clock                #    0.998 CPUs utilized
     3,808,323,185      cycles                    #    3.033 GHz                      (66.65%)
     7,616,646,370      instructions              #    2.00  insn per cycle           (66.70%)
        10,000,000      fp_arith_inst_retired.scalar_double
         5,000,000      fp_arith_inst_retired.256b_packed_double
   <not supported>      LLC-load-misses
            100.00 MiB  uncore_imc/data_reads/
             60.00 MiB  uncore_imc/data_writes/

       1.258000000 seconds time elapsed

       1.200000000 seconds user
       0.050000000 seconds sys
"""


def test_perf_stat_gives_ipc_work_and_bytes(put) -> None:
    profile = put(PERF, "perf.txt")
    (program,) = profile.kernels
    assert program.name == "./triad"
    assert program.facts["ipc"] == pytest.approx(2)
    assert program.facts["cpi"] == pytest.approx(0.5)
    # 10 + 4 x 5 million.
    assert program.flop_count == 30e6
    assert program.byte_count() == 160 * 2**20
    assert program.seconds == pytest.approx(1.258)
    assert profile.counters["user"] == pytest.approx(1.2)
    assert profile.counters["task-clock"] == pytest.approx(1.25554)
    assert "LLC-load-misses" not in profile.counters
    assert any("66.65" in note for note in profile.notes)


def test_perf_stat_in_another_locale_and_as_csv(put) -> None:
    text = """
 Performance counter stats for './cfg':

           26,554473 task-clock (msec)       #    0,965 CPUs utilized
          77 375 671 cycles                  #    2,914 GHz
         121 540 390 instructions            #    1,57  insns per cycle

         0,027513000 seconds time elapsed
"""
    profile = put(text, "perf.txt")
    assert profile.kernels[0].facts["ipc"] == pytest.approx(121_540_390 / 77_375_671)
    assert profile.time.to("ms").magnitude == pytest.approx(27.513)
    rows = "1000,,cycles,500,100.00,,\n2000,,instructions,500,100.00,2.0,insn per cycle\n"
    assert put(rows, "perf.csv").kernels[0].facts["ipc"] == 2
    with pytest.raises(DataFileError, match="so the text is cut off"):
        put(PERF[: PERF.index("1.258")], "cut.txt")


def test_joining_scales_by_launch_only_what_is_alike(put) -> None:
    header = '"ID","Kernel Name","gpu__time_duration.sum","dram__bytes.sum"\n"","","us","byte"\n'
    alike = put(header + '"0","k","1","100"\n"1","k","1","100"\n', "a.csv")
    times = put('"Name","Calls","TotalDurationNs"\n"k",10,20000\n', "b.csv")
    assert join(alike, times).kernels[0].byte_count() == 1000
    with pytest.raises(InvalidValueError, match="counts neither operations nor bytes"):
        join(times, alike)
    other = put('"Name","Calls","TotalDurationNs"\n"other",10,20000\n', "c.csv")
    with pytest.raises(InvalidValueError, match="no kernel is in both files"):
        join(alike, other)
    work = scalar("f", 0, 0, 10)
    uneven = put(
        long(work) + long(scalar("f", 0, 0, 1000)).removeprefix(LONG).replace('"0","k"', '"1","k"'),
        "d.csv",
    )
    assert uneven.flops.magnitude == 2020
    assert "different amounts of work" in join(uneven, times).kernels[0].missing["flops"]


@pytest.mark.parametrize(
    ("content", "name", "why"),
    [
        (b"", "a.csv", "the file is empty"),
        (b"\0" * 5000, "a.csv", "the file is empty"),
        (b"NVR\0" + bytes(range(256)), "a.ncu-rep", "ncu --import a.ncu-rep"),
        (b"\x01\x00\x02\x00\xff\x00" * 100, "a.nsys-rep", "nsys export --type sqlite a.nsys-rep"),
        (b"PK\x03\x04abc", "a.zip", "unzip a.zip"),
        (gzip.compress(b"x" * 1000, mtime=0)[:-10], "a.csv.gz", "can't be read|damaged or cut off"),
        (b"hello\n", "a.txt", "it begins with 'hello'"),
    ],
)
def test_what_can_not_be_read_says_what_to_do(put, content: bytes, name: str, why: str) -> None:
    with pytest.raises(DataFileError, match=why):
        put(content, name)


def test_a_path_that_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(DataFileError, match="no such file"):
        read_profile(tmp_path / "nothing.csv")
    with pytest.raises(DataFileError, match="is a folder"):
        read_profile(tmp_path)


RULES = (
    '"ID","Kernel Name","CC","Metric Name","Metric Unit","Metric Value","Rule Name","Rule Type"\n'
    '"0","copy(int *, int)","7.5","gpu__time_duration.sum","ns","21,058,944",\n'
    '"0","copy(int *, int)","7.5","dram__bytes.sum","byte","4,137,000,000",\n'
    '"0","copy(int *, int)","7.5","","","","SOLBottleneck","OPT"\n'
)


def test_ncu_leaves_the_columns_of_rules_out_of_rows_without_a_rule(put) -> None:
    (kernel,) = put(RULES).kernels
    assert (kernel.calls, kernel.seconds) == (1, pytest.approx(21.058944e-3))
    assert kernel.traffic["dram"] == pytest.approx(4.137e9)
    # one cell less is damage, and so is a rule's name without the rest
    for broken in (RULES.replace('"ns",', ""), RULES.replace('"21,058,944",', '"21,058,944","x"')):
        with pytest.raises(DataFileError, match=r":2: the row must have 8 cells"):
            put(broken)


@pytest.mark.parametrize(
    "text",
    [
        '{"traceEvents":[{},{"ph":"X","name":"k","pid":6,"args":{"BeginNs":"1","EndNs":"3"}}]}',
        '{"rocprofiler-sdk-tool": [{"metadata": {}}]}',
    ],
)
def test_rocprofs_json_has_words_of_its_own(put, text: str) -> None:
    with pytest.raises(DataFileError, match=r"rocprof's trace for a browser\. Give the table"):
        put(text)


def test_what_is_no_path_is_refused_as_such() -> None:
    with pytest.raises(InvalidValueError, match="given by its path as text or Path, not None"):
        read_profile(None)  # type: ignore[arg-type]
