"""Metrics of Nsight Compute: which operations and which bytes they count.

Scalar work: an instruction of one thread is one operation, a fused multiply-add two. Half
precision works on pairs, so Nsight Compute's own roofline counts it twice over (its derived
metrics end in _x2 and _x4). Tensor cores: `sm__ops_path_tensor_*` are operations already;
`sm__inst_executed_pipe_tensor` are instructions of a warp, whose size differs by kind.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from mlsim.equations import counters

# Scalar instructions of each data path: add, multiply, fused multiply-add; and how many numbers
# one instruction of a thread works on.
SCALAR: Mapping[str, tuple[str, int]] = {"fp64": ("d", 1), "fp32": ("f", 1), "fp16": ("h", 2)}
THREAD = "sass_thread_inst_executed_op_{kind}{op}_pred_on"
OPS_PATH = "ops_path_tensor"
TENSOR_INSTRUCTIONS = "inst_executed_pipe_tensor"
SECTOR_BYTES = 32
WAVEFRONT_BYTES = 128
# The time of a kernel, best first.
TIMES = ("gpu__time_duration", "gpu__time_active")
# Bytes by level: alternatives, best first; each is added up, and sectors hold 32 bytes.
BYTES: Mapping[str, tuple[tuple[str, ...], ...]] = {
    "dram": (
        ("dram__bytes",),
        ("dram__bytes_read", "dram__bytes_write"),
        ("dram__bytes_op_read", "dram__bytes_op_write"),
        ("dram__sectors",),
        ("dram__sectors_read", "dram__sectors_write"),
        ("dram__sectors_op_read", "dram__sectors_op_write"),
        ("fbpa__dram_read_bytes", "fbpa__dram_write_bytes"),
        ("fbpa__dram_read_sectors", "fbpa__dram_write_sectors"),
    ),
    "l2": (
        ("lts__t_bytes",),
        ("lts__t_sectors",),
        ("lts__t_sectors_op_read", "lts__t_sectors_op_write"),
        ("lts__t_sectors_srcunit_tex",),
        ("lts__t_bytes_equiv_l1sectormiss_pipe_lsu_mem_global_op_ld",),
    ),
    "l1": (
        ("l1tex__t_bytes",),
        ("l1tex__t_sectors",),
        ("l1tex__t_bytes_pipe_lsu_mem_global_op_ld", "l1tex__t_bytes_pipe_lsu_mem_global_op_st"),
        (
            "l1tex__t_sectors_pipe_lsu_mem_global_op_ld",
            "l1tex__t_sectors_pipe_lsu_mem_global_op_st",
        ),
    ),
    "shared": (
        ("sass__data_bytes_mem_shared",),
        ("smsp__sass_data_bytes_mem_shared",),
        ("l1tex__data_pipe_lsu_wavefronts_mem_shared",),
        (
            "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld",
            "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st",
        ),
    ),
}
# One reading is not a whole level: what it leaves out.
PARTIAL = {"lts__t_bytes_equiv_l1sectormiss_pipe_lsu_mem_global_op_ld": "loads alone"}
# What the page "details" prints in words.
DETAILS = {
    "Duration": ("gpu__time_duration.sum", "s"),
    "Elapsed Cycles": ("sm__cycles_elapsed.max", "1"),
    "SM Frequency": ("sm__cycles_elapsed.avg.per_second", "1/s"),
    "Memory Throughput": ("dram__bytes.sum.per_second", "B/s"),
    "Registers Per Thread": ("launch__registers_per_thread", ""),
    "Achieved Occupancy": ("sm__warps_active.avg.pct_of_peak_sustained_active", "%"),
    "Theoretical Occupancy": ("sm__maximum_warps_per_active_cycle_pct", "%"),
    "L2 Hit Rate": ("lts__t_sector_hit_rate.pct", "%"),
    "L1/TEX Hit Rate": ("l1tex__t_sector_hit_rate.pct", "%"),
    "DRAM Throughput": ("gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed", "%"),
    "Compute (SM) Throughput": ("sm__throughput.avg.pct_of_peak_sustained_elapsed", "%"),
    "Executed Ipc Active": ("sm__inst_executed.avg.per_cycle_active", ""),
}
# What else is kept of a launch, and what it is called.
FACTS = {
    "launch__registers_per_thread": "registers",
    "sm__warps_active.avg.pct_of_peak_sustained_active": "occupancy",
    "lts__t_sector_hit_rate.pct": "l2_hit_rate",
    "l1tex__t_sector_hit_rate.pct": "l1_hit_rate",
    "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed": "dram_throughput",
    "dram__throughput.avg.pct_of_peak_sustained_elapsed": "dram_throughput",
    "sm__throughput.avg.pct_of_peak_sustained_elapsed": "sm_throughput",
    "smsp__thread_inst_executed_per_inst_executed.ratio": "threads_per_instruction",
}
# Tensor-core instructions of a warp by the shape in a kernel's name: rows, columns, depth of
# the product. Volta's HMMA.884 is a quarter of its 8x8x4 for each of four groups of threads.
SHAPES = {
    "16832": (16, 8, 32),
    "16816": (16, 8, 16),
    "8832": (8, 8, 32),
    "8816": (8, 8, 16),
    "1688": (16, 8, 8),
    "884": (8, 8, 4),
}
_SHAPE = re.compile(r"(?<![0-9])[shi](16832|16816|8832|8816|1688|884)(?![0-9])")
_TENSOR_NAME = re.compile(
    r"tensor_?op|[hiqdb]mma(?![a-z])|wmma|wgmma|gmma|tcgen05|xmma|mma_sync|flash|fmha|nvjet|cudnn.*sm[89]0"
    r"|(?<![0-9])[shi](?:884|1688|16816|16832|8816)|tf32|bf16.*gemm|fp16.*gemm|gemm.*(?:bf16|fp16|half)"
    r"|(?:bfloat16|__half|half_t).*(?:gemm|attention|conv)|(?:gemm|attention|conv).*(?:bfloat16|__half|half_t)"
    r"|fp8|e4m3|marlin|[hb]gemm|turing_fp16|volta_fp16",
    re.IGNORECASE,
)
# Names without any of it though they look so: single precision on CUDA cores, and helpers.
_SCALAR_NAME = re.compile(
    r"sgemm|scudnn|dgemm|gcgemm|nchwToNhwc|nhwcToNchw|splitKreduce|computeOffsets|combine_kernel"
    r"|reduce_kernel|transpose_readWrite|_ffma",
)
_PRODUCT_NAME = re.compile(
    r"gemm|matmul|conv(?!ert)|attention|attn|_dot|mul_mat|bmm", re.IGNORECASE
)
_HALF_NAME = re.compile(r"half|bf16|bfloat|fp16|f16|[hH]gemm|c10::Half|_h\b")


@dataclass(frozen=True, slots=True)
class TensorMetric:
    """A metric of operations on tensor cores, taken apart."""

    operation: str
    sources: frozenset[str]
    result: str
    sparsity: str

    def covers(self, other: TensorMetric) -> bool:
        """Whether what the other counts is part of what this one counts."""
        return (
            self != other
            and self.sources >= other.sources
            and self.operation in ("", other.operation)
            and self.result in ("", other.result)
            and self.sparsity in ("", other.sparsity)
        )

    @property
    def path(self) -> str:
        """The data path, a key of `mlsim.profiling.PATHS`."""
        from mlsim.profiling.measured_profile import PATHS

        only = next(iter(self.sources)) if len(self.sources) == 1 else ""
        return f"tensor {only}" if f"tensor {only}" in PATHS else "tensor"


_OPS = re.compile(
    r"ops_path_tensor(?:_op_(?P<op>[a-z0-9]+))?"
    r"(?:_src(?P<src>(?:_[a-z]{0,2}(?:fp|bf|tf|int)\d+)+))?(?:_dst_(?P<dst>[a-z0-9]+))?"
    r"(?:_sparsity_(?P<sp>on|off))?"
)


@lru_cache(maxsize=4096)
def tensor_metric(base: str) -> TensorMetric | None:
    """Take a metric apart; None if it is no count of tensor-core operations.

    `base` has neither the unit in front nor the roll-up behind.

    >>> found = tensor_metric("ops_path_tensor_src_bf16_dst_fp32_sparsity_off")
    >>> found.path, found.sparsity
    ('tensor bf16', 'off')
    >>> tensor_metric("ops_path_tensor_src_fp4_fp6_fp8_dst_fp32").path
    'tensor'
    """
    found = _OPS.fullmatch(base)
    if not found:
        return None
    sources = frozenset(each for each in (found["src"] or "").split("_") if each)
    return TensorMetric(found["op"] or "", sources, found["dst"] or "", found["sp"] or "")


def without_doubles(metrics: Mapping[TensorMetric, float]) -> dict[TensorMetric, float]:
    """Leave out metrics that are part of another that is there.

    >>> whole, part = tensor_metric("ops_path_tensor_src_fp64"), tensor_metric(
    ...     "ops_path_tensor_src_fp64_sparsity_off")
    >>> list(without_doubles({whole: 5.0, part: 5.0})) == [whole]
    True
    """
    return {
        each: value
        for each, value in metrics.items()
        if not any(other.covers(each) for other in metrics)
    }


def shape_in(name: str, capability: str) -> tuple[int, int, int] | None:
    """Return the shape of the tensor-core instruction that a kernel's name tells.

    >>> shape_in("ampere_fp16_s16816gemm_fp16_64x64_tn", "8.0"), shape_in("my_kernel", "8.0")
    ((16, 8, 16), None)
    """
    found = _SHAPE.search(name)
    if found:
        return SHAPES[found[1]]
    # On Volta there is no other.
    return SHAPES["884"] if capability in ("7.0", "7.2") else None


def instruction_flops(instructions: float, shape: tuple[int, int, int]) -> float:
    """Return the operations of tensor-core instructions of one shape."""
    rows, columns, depth = shape
    return float(counters.matrix_instruction_flops(instructions, rows, columns, depth))


@lru_cache(maxsize=4096)
def looks_like_tensor(name: str) -> bool:
    """Whether a kernel's name shows work on tensor cores.

    >>> [looks_like_tensor(each) for each in ("flash_fwd_kernel", "ampere_sgemm_64x64_tn",
    ...     "ampere_fp16_s16816gemm_fp16_64x64_ldg8", "saxpy_kernel")]
    [True, False, True, False]
    """
    return bool(_TENSOR_NAME.search(name)) and not _SCALAR_NAME.search(name)


@lru_cache(maxsize=4096)
def looks_like_product(name: str) -> bool:
    """Whether a kernel's name shows a matrix product, a convolution or attention."""
    return bool(_PRODUCT_NAME.search(name)) and not _SCALAR_NAME.search(name)


@lru_cache(maxsize=4096)
def looks_like_half(name: str) -> bool:
    """Whether a kernel's name shows numbers of 16 bits."""
    return bool(_HALF_NAME.search(name))


def capability_number(capability: str) -> float:
    """Return a compute capability as a number; 0 if it is not known."""
    return float(capability) if re.fullmatch(r"\d+\.\d", capability) else 0.0


@lru_cache(maxsize=4096)
def has_tensor_cores(capability: str) -> bool:
    """Whether a device may have tensor cores; one that is not known may.

    >>> has_tensor_cores("6.1"), has_tensor_cores("8.6"), has_tensor_cores("")
    (False, True, True)
    """
    number = capability_number(capability)
    return number == 0 or number >= 7.0


@lru_cache(maxsize=4096)
def wanted_tensor_metrics(capability: str) -> str:
    """Return the metrics that would count tensor-core work on a device, for a message.

    >>> wanted_tensor_metrics("8.0").split(",")[0]
    'sm__ops_path_tensor_src_bf16_dst_fp32.sum'
    """
    number = capability_number(capability)
    if number and number < 8.0:
        return "sm__inst_executed_pipe_tensor.sum"
    formats = ["bf16_dst_fp32", "fp16_dst_fp16", "fp16_dst_fp32", "tf32_dst_fp32"]
    if number >= 10.0:
        return "regex:sm__ops_path_tensor_.*src.*"
    if number >= 8.9:
        formats.append("fp8")
    formats += ["fp64", "int8"] if number in (8.0, 9.0, 0.0) else ["int8"]
    return ",".join(f"sm__ops_path_tensor_src_{each}.sum" for each in formats)
