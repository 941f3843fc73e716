"""What devices and links were measured to achieve."""

ENTRIES: tuple[tuple[str, str, str, str], ...] = (
    # A matrix product on the cores of a device.
    ("cores", r"N_\mathrm{core}", "1", "Cores of a device, each of which works on one tile."),
    ("tile_size", r"q", "1", "Most rows (and columns) of a product's result in one tile."),
    ("product_rows", r"q_m", "1", "Rows of the result of a matrix product."),
    ("outputs", r"q_n", "1", "Columns of the result of a matrix product; 0 if it is none."),
    ("waves", r"n_\mathrm{wave}", "1", "Rounds in which the cores work on all tiles of a product."),
    ("filled_share", r"s_\mathrm{fill}", "1", "Part of those rounds that the result fills."),
    # What was measured, over what the data sheet says.
    (
        "compute_fraction",
        r"\eta_c",
        "1",
        "Part of the peak rate that large matrix products reach on full cores.",
    ),
    (
        "memory_fraction",
        r"\eta_m",
        "1",
        "Part of the memory bandwidth that a stream of bytes reaches.",
    ),
    ("link_fraction", r"\eta_l", "1", "Part of the link bandwidth that a large message reaches."),
    ("link_latency", r"\alpha_l", "s", "Time to start sending among a group of devices."),
    ("kernel_overhead", r"\alpha_k", "s", "Time of an operator that does nothing, on the device."),
    ("total_overhead_time", r"T_\alpha", "s", "Time that a step spends starting operators."),
    ("overhead_share", r"s_\alpha", "1", "Part of the step that is spent starting operators."),
)
