"""What operators, networks and devices are described by."""

ENTRIES: tuple[tuple[str, str, str, str], ...] = (
    # What is asked of the solver.
    ("batch_size", r"B", "sample", "Samples that go through the network together in one step."),
    # A layer, as its architecture gives it.
    ("input_size", r"H_\mathrm{in}", "1", "Height (and width) of a layer's input, in pixels."),
    ("output_size", r"H_\mathrm{out}", "1", "Height (and width) of a layer's output, in pixels."),
    ("kernel_size", r"K", "1", "Height (and width) of the window of a convolution or pool."),
    ("stride", r"S", "1", "Pixels by which the window moves from one output to the next."),
    ("padding", r"P", "1", "Pixels of border added on each side of a layer's input."),
    ("groups", r"G", "1", "Parts into which the channels of a convolution are split."),
    ("in_channels", r"C_\mathrm{in}", "1", "Channels (or features) that a layer reads."),
    ("out_channels", r"C_\mathrm{out}", "1", "Channels (or features) that a layer writes."),
    (
        "multiply_adds",
        r"m",
        "MAC/sample",
        "Multiply-add operations that an operator performs for one sample.",
    ),
    ("parameters", r"p", "parameter", "Learned numbers that an operator holds."),
    (
        "table_parameters",
        r"p_T",
        "parameter",
        "Learned numbers in an operator's tables, of which a sample reads a few rows.",
    ),
    (
        "activations_read",
        r"a_\mathrm{in}",
        "element/sample",
        "Elements of activation that an operator reads for one sample.",
    ),
    (
        "activations_written",
        r"a_\mathrm{out}",
        "element/sample",
        "Elements of activation that an operator writes for one sample.",
    ),
    (
        "activations_live",
        r"a_\mathrm{live}",
        "element/sample",
        "Most elements of activation that must be in memory at one time for one sample.",
    ),
    (
        "operator_live",
        r"a_\mathrm{op}",
        "element/sample",
        "Elements of activation that must be kept while an operator runs, for one sample.",
    ),
    (
        "boundary_elements",
        r"a_\mathrm{edge}",
        "element/sample",
        "Elements that an operator moves into or out of the network, for one sample.",
    ),
    ("repeats", r"n", "1", "How often an identical operator stands in the network."),
    # How numbers are stored.
    (
        "flops_per_multiply_add",
        r"\phi",
        "FLOP/MAC",
        "Floating-point operations in one multiply-add: a product and a sum.",
    ),
    ("bytes_per_parameter", r"b_p", "B/parameter", "Bytes that store one parameter."),
    ("bytes_per_element", r"b_a", "B/element", "Bytes that store one element of activation."),
    # The device.
    (
        "peak_flops",
        r"P_\mathrm{peak}",
        "FLOP/s",
        "Highest rate at which the device can compute in a given precision, dense.",
    ),
    (
        "memory_bandwidth",
        r"\beta",
        "B/s",
        "Highest rate at which the device can move bytes to and from its main memory.",
    ),
    ("memory_capacity", r"M", "B", "Bytes that the device's main memory holds."),
    (
        "last_level_cache",
        r"M_\mathrm{LLC}",
        "B",
        "Bytes that the device's last cache before its main memory holds.",
    ),
    (
        "ridge_point",
        r"I_\mathrm{ridge}",
        "FLOP/B",
        "Arithmetic intensity at which moving the bytes takes as long as computing.",
    ),
    # Work and traffic of an operator.
    ("flops", r"F", "FLOP", "Floating-point operations of an operator in one step."),
    ("weight_bytes", r"D_w", "B", "Bytes of parameters that an operator reads in one step."),
    (
        "activation_bytes",
        r"D_a",
        "B",
        "Bytes of activation that an operator reads and writes in one step.",
    ),
    (
        "live_bytes",
        r"D_\mathrm{live}",
        "B",
        "Bytes of activation that must be kept while an operator runs.",
    ),
    ("bytes_moved", r"D", "B", "Bytes that an operator moves to or from memory in one step."),
    (
        "arithmetic_intensity",
        r"I",
        "FLOP/B",
        "Floating-point operations done for each byte moved.",
    ),
    (
        "attainable_flops",
        r"P_\mathrm{att}",
        "FLOP/s",
        "Highest rate that the roofline allows at a given arithmetic intensity.",
    ),
    # Times.
    ("compute_time", r"t_\mathrm{comp}", "s", "Time to compute at the peak rate."),
    ("memory_time", r"t_\mathrm{mem}", "s", "Time to move the bytes at full bandwidth."),
    (
        "roofline_time",
        r"t",
        "s",
        "Time of an operator when computing and moving bytes overlap perfectly.",
    ),
    ("latency", r"T", "s", "Time from the start of a step to its end."),
    (
        "operator_memory_bound_time",
        r"t_\mathrm{mb}",
        "s",
        "Time of an operator if it is memory-bound, and zero if it is compute-bound.",
    ),
    (
        "memory_bound_time",
        r"T_\mathrm{mb}",
        "s",
        "Time spent in operators for which memory takes longer than computing.",
    ),
    (
        "memory_bound_share",
        r"s_\mathrm{mb}",
        "1",
        "Part of the latency that is spent in memory-bound operators.",
    ),
    ("throughput", r"R", "sample/s", "Samples finished per second."),
    # Totals over the network.
    ("total_flops", r"F_\Sigma", "FLOP", "Floating-point operations of the network in one step."),
    ("total_bytes", r"D_\Sigma", "B", "Bytes that all operators move in one step."),
    (
        "total_compute_time",
        r"T_\mathrm{comp}",
        "s",
        "Compute times of all operators added up, as if memory cost nothing.",
    ),
    (
        "total_memory_time",
        r"T_\mathrm{mem}",
        "s",
        "Memory times of all operators added up, as if computing cost nothing.",
    ),
    (
        "network_intensity",
        r"I_\Sigma",
        "FLOP/B",
        "Arithmetic intensity of the whole network: its FLOPs over its bytes moved.",
    ),
    ("achieved_flops", r"P_\mathrm{ach}", "FLOP/s", "FLOPs of the network over its latency."),
    # Memory.
    ("weight_memory", r"M_w", "B", "Memory that the parameters of the network take."),
    ("activation_memory", r"M_a", "B", "Memory that the live activations take at their peak."),
    ("memory_required", r"M_\mathrm{req}", "B", "Memory that the network needs to run."),
    ("memory_free", r"M_\mathrm{free}", "B", "Memory left over; negative if it does not fit."),
)
