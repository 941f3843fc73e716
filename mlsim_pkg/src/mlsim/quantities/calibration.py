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
    # What the time of a step goes into.
    ("full_tile_time", r"t_q", "s", "Time to compute if an operator's tiles filled all cores."),
    ("untiled_time", r"t_\mathrm{full}", "s", "Time of an operator whose tiles fill all cores."),
    ("operator_tile_time", r"t_\mathrm{tile}", "s", "Time that an operator loses to its tiles."),
    ("tile_time", r"T_\mathrm{tile}", "s", "Time that a step loses to tiles."),
    (
        "operator_streaming_time",
        r"t_\mathrm{wait}",
        "s",
        "Time of an operator that waits for memory, whatever its tiles.",
    ),
    (
        "streaming_time",
        r"T_\mathrm{wait}",
        "s",
        "Time of a step in operators that wait for memory, whatever their tiles.",
    ),
    ("start_time", r"T_\mathrm{start}", "s", "Time of a step in which operators are started."),
    (
        "host_time",
        r"T_\mathrm{host}",
        "s",
        "Time of a step in which the device waits for its host.",
    ),
    ("arithmetic_time", r"T_\mathrm{arith}", "s", "Time of a step that arithmetic limits."),
    ("arithmetic_share", r"s_\mathrm{arith}", "1", "Part of a step that arithmetic limits."),
    ("streaming_share", r"s_\mathrm{wait}", "1", "Part of a step that memory limits."),
    ("tile_share", r"s_\mathrm{tile}", "1", "Part of a step that is lost to tiles."),
    ("start_share", r"s_\mathrm{start}", "1", "Part of a step that starts operators."),
    ("host_share", r"s_\mathrm{host}", "1", "Part of a step that waits for the host."),
    ("lost_share", r"s_\mathrm{lost}", "1", "Part of a step that is overhead of any kind."),
    (
        "micro_batch_tile_time",
        r"T_{\mu,\mathrm{tile}}",
        "s",
        "Time that a micro-batch loses to tiles.",
    ),
    (
        "micro_batch_streaming_time",
        r"T_{\mu,\mathrm{wait}}",
        "s",
        "Time of a micro-batch in kernels that wait for memory, whatever their tiles.",
    ),
    (
        "micro_batch_start_time",
        r"T_{\mu,\mathrm{start}}",
        "s",
        "Time of a micro-batch in which kernels are started.",
    ),
    ("bubble_share", r"s_\circ", "1", "Part of a step that waits for the pipeline to fill."),
)
