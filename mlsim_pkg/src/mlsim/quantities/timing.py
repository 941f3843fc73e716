"""What a clock and the counters of a processor say of a run."""

ENTRIES: tuple[tuple[str, str, str, str], ...] = (
    ("wall_time", r"T_\text{wall}", "s", "Time from the start of a run to its end, on a clock."),
    ("user_time", r"T_\text{user}", "s", "Time of all cores in a program's own code."),
    (
        "system_time",
        r"T_\text{sys}",
        "s",
        "Time of all cores in the operating system, on behalf of a program.",
    ),
    ("waiting_time", r"T_\text{wait}", "s", "Time in which no core worked for a program."),
    ("cores_busy", r"N_\text{busy}", "1", "Cores that worked for a program, on average."),
    ("cycles", r"n_\text{cyc}", "1", "Clock cycles of the cores while they ran a program."),
    ("instructions", r"n_\text{ins}", "1", "Instructions that the cores finished for a program."),
    ("cycles_per_instruction", r"\text{CPI}", "1", "Clock cycles for each finished instruction."),
    ("instructions_per_cycle", r"\text{IPC}", "1", "Instructions finished in each clock cycle."),
    ("cache_misses", r"n_\text{miss}", "1", "Reads that the last cache could not answer."),
    ("cache_line", r"b_\text{line}", "B", "Bytes that a cache fetches at a time."),
    ("miss_traffic", r"D_\text{miss}", "B", "Bytes that misses brought from main memory."),
    (
        "used_bandwidth",
        r"\beta_\text{used}",
        "B/s",
        "Rate at which a program moved bytes from main memory.",
    ),
    ("bandwidth_use", r"s_\beta", "1", "Part of the memory's bandwidth that a program used."),
)
