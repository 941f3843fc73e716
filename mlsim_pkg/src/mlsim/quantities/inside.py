"""What is inside a machine: units that multiply, arrays of cells, and what feeds them."""

ENTRIES: tuple[tuple[str, str, str, str], ...] = (
    # Where a peak rate comes from.
    (
        "units_per_core",
        r"n_\text{unit}",
        "1",
        "Arithmetic units of a core that work side by side in each clock cycle.",
    ),
    (
        "unit_multiply_adds",
        r"m_\text{unit}",
        "MAC",
        "Multiply-adds that one arithmetic unit does in a clock cycle.",
    ),
    ("clock_rate", r"f_\text{clk}", "1/s", "Clock cycles of a device in a second."),
    # A product of matrices on an array of cells.
    ("array_rows", r"R_\text{arr}", "1", "Rows of cells in a systolic array."),
    ("array_columns", r"C_\text{arr}", "1", "Columns of cells in a systolic array."),
    (
        "streamed_vectors",
        r"n_\text{vec}",
        "1",
        "Vectors that stream through a systolic array, one behind the other, past one tile.",
    ),
    (
        "array_tiles",
        r"n_\text{tile}",
        "1",
        "Tiles into which a product is cut for a systolic array, one at rest at a time.",
    ),
    ("tile_cycles", r"c_\text{tile}", "1", "Clock cycles that a systolic array takes for a tile."),
    ("array_cycles", r"c_\text{arr}", "1", "Clock cycles of a product on a systolic array."),
    (
        "array_use",
        r"u_\text{arr}",
        "1",
        "Part of the cells and cycles of a product that do one of its multiply-adds.",
    ),
    ("weight_reads", r"A_w", "1", "Weights that enter a systolic array from the memory beside it."),
    ("input_reads", r"A_x", "1", "Inputs that enter a systolic array from the memory beside it."),
    (
        "output_moves",
        r"A_y",
        "1",
        "Outputs and partial sums that move between a systolic array and the memory beside it.",
    ),
    # What brings samples to a device.
    ("storage_bandwidth", r"\beta_\text{disk}", "B/s", "Rate at which a disk is read."),
    ("stored_bytes", r"b_\text{disk}", "B/sample", "Bytes of a sample as it lies on a disk."),
    ("read_rate", r"R_\text{disk}", "sample/s", "Samples that a disk delivers in a second."),
    ("load_workers", r"n_\text{load}", "1", "Processes on the host that prepare samples."),
    (
        "worker_rate",
        r"R_\text{work}",
        "sample/s",
        "Samples that one process prepares in a second: decodes, crops, puts in a batch.",
    ),
    ("prepare_rate", r"R_\text{prep}", "sample/s", "Samples that the host prepares in a second."),
    (
        "host_link_bandwidth",
        r"\beta_\text{host}",
        "B/s",
        "Rate at which a host sends to a device, one way.",
    ),
    (
        "copied_bytes",
        r"b_\text{host}",
        "B/sample",
        "Bytes of a prepared sample that a host sends to a device.",
    ),
    ("copy_rate", r"R_\text{host}", "sample/s", "Samples that a host sends to a device a second."),
    ("supply_rate", r"R_\text{in}", "sample/s", "Samples that arrive at a device in a second."),
    (
        "fed_throughput",
        r"R_\text{fed}",
        "sample/s",
        "Samples finished per second by a device that has to wait for them.",
    ),
    ("starved_share", r"s_\text{wait}", "1", "Part of the time in which a device waits for data."),
)
