"""What counters of a processor count, and what follows from them."""

ENTRIES: tuple[tuple[str, str, str, str], ...] = (
    # Instructions of threads, outside tensor cores.
    ("additions", r"n_\text{add}", "FLOP", "Additions that threads executed."),
    ("multiplications", r"n_\text{mul}", "FLOP", "Multiplications that threads executed."),
    (
        "fused_multiply_adds",
        r"n_\text{fma}",
        "FLOP",
        "Fused multiply-adds that threads executed, each counted once.",
    ),
    ("counted_flops", r"W_\text{ctr}", "FLOP", "Work of a program, as counters saw it."),
    # Instructions of tensor cores.
    (
        "matrix_instructions",
        r"n_\text{mma}",
        "FLOP",
        "Instructions of a tensor core, each counted once.",
    ),
    ("instruction_rows", r"m_\text{mma}", "1", "Rows of the product of one such instruction."),
    ("instruction_columns", r"n_\text{col}", "1", "Columns of the product of one instruction."),
    (
        "instruction_depth",
        r"k_\text{mma}",
        "1",
        "Multiply-adds for each result of one instruction.",
    ),
    (
        "matrix_instruction_flops",
        r"W_\text{mma}",
        "FLOP",
        "Work of tensor cores, from the instructions that a counter saw.",
    ),
    # Bytes.
    ("sectors", r"n_\text{sec}", "1", "Sectors that moved between two levels of memory."),
    ("sector_bytes", r"b_\text{sec}", "B", "Bytes of a sector, the least that moves at a time."),
    ("sector_traffic", r"D_\text{sec}", "B", "Bytes that moved in sectors."),
    # Against the roof, and over time.
    ("roof_share", r"s_\text{roof}", "1", "Part of the rate under the roof that was reached."),
    (
        "occupied_time",
        r"T_\text{occ}",
        "s",
        "Time in which a device worked; overlaps count once.",
    ),
    ("observed_time", r"T_\text{obs}", "s", "Time from the first event of a trace to the last."),
    ("busy_share", r"s_\text{busy}", "1", "Part of the observed time in which a device worked."),
    ("time_before", r"T_\text{old}", "s", "Time of a piece of work before a change."),
    ("time_after", r"T_\text{new}", "s", "Time of the same work after the change."),
    (
        "unfused_peak",
        r"P_\text{unf}",
        "FLOP/s",
        "Highest rate of arithmetic units if no multiplication is fused with an addition.",
    ),
    (
        "one_core_peak",
        r"P_\text{one}",
        "FLOP/s",
        "Highest rate of one core, or of one streaming multiprocessor.",
    ),
    ("change_speedup", r"S_\text{chg}", "1", "Time before a change over the time after it."),
)
