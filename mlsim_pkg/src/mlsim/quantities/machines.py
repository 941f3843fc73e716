"""What processors and their memories are explained by: Amdahl's law, scaling, tiles."""

ENTRIES: tuple[tuple[str, str, str, str], ...] = (
    # Many processors.
    (
        "parallel_share",
        r"s_\parallel",
        "1",
        "Part of a program's time on one processor that several processors can share.",
    ),
    ("processors", r"N_\mathrm{proc}", "1", "Processors that share the parallel part."),
    ("speedup", r"S_\parallel", "1", "Time on one processor over the time on several."),
    ("mean_busy_time", r"\bar t_\mathrm{busy}", "s", "Mean time that a processor works at a job."),
    (
        "longest_busy_time",
        r"\hat t_\mathrm{busy}",
        "s",
        "Time of the processor that works longest.",
    ),
    ("load_balance", r"b_\parallel", "1", "Mean busy time of processors over the longest one."),
    # A circuit before and after a change.
    ("capacitance_ratio", r"k_C", "1", "Capacitance that a clock tick switches, over the old one."),
    ("voltage_ratio", r"k_V", "1", "Voltage of a circuit, over the old one."),
    ("frequency_ratio", r"k_f", "1", "Clock frequency of a circuit, over the old one."),
    ("power_ratio", r"k_P", "1", "Power that switching takes, over the old one."),
    # A matrix product in tiles.
    ("product_depth", r"q_k", "1", "Multiply-adds for each number of a matrix product's result."),
    (
        "operand_reads",
        r"a_\mathrm{op,in}",
        "element",
        "Elements of both inputs that a matrix product reads from the slower memory.",
    ),
    (
        "tile_bytes",
        r"D_\mathrm{tile}",
        "B",
        "Bytes of one square tile of each of the two inputs of a matrix product.",
    ),
    (
        "tile_intensity",
        r"I_\mathrm{tile}",
        "FLOP/B",
        "Floating-point operations for each byte of the inputs that a tiled product reads.",
    ),
)
