"""What fine-tuning with adapters is described by: what is trained, what is frozen, and in what."""

ENTRIES: tuple[tuple[str, str, str, str], ...] = (
    ("adapter_rank", r"r_\text{LoRA}", "1", "Width between the two matrices of an adapter."),
    # Parameters.
    (
        "trained_parameters",
        r"p_\text{train}",
        "parameter",
        "Parameters of a whole model that training changes.",
    ),
    (
        "trained_share",
        r"s_\text{train}",
        "1",
        "Parameters that training changes, per parameter of the model.",
    ),
    (
        "adapter_parameters",
        r"p_\text{LoRA}",
        "parameter",
        "Parameters of the adapters on a device.",
    ),
    (
        "adapter_dense_parameters",
        r"p_{\text{LoRA},d}",
        "parameter",
        "Parameters of adapters on a device that all copies hold.",
    ),
    (
        "adapter_expert_parameters",
        r"p_{\text{LoRA},E}",
        "parameter",
        "Parameters of adapters on a device that belong to experts.",
    ),
    # Formats.
    (
        "value_bytes",
        r"b_\text{value}",
        "B/parameter",
        "Bytes of a quantised parameter without its share of constants.",
    ),
    (
        "block_parameters",
        r"n_\text{block}",
        "parameter",
        "Quantized parameters that share a constant.",
    ),
    ("constant_bytes", r"b_\text{const}", "B", "Bytes of such a constant."),
    (
        "block_constants",
        r"n_\text{const}",
        "1",
        "Constants that are quantised together, and share a second constant.",
    ),
    ("second_constant_bytes", r"b_\text{second}", "B", "Bytes of such a second constant."),
    (
        "bytes_per_quantized",
        r"b_\text{quant}",
        "B/parameter",
        "Bytes of a quantised parameter with its share of all constants.",
    ),
    (
        "quantized_parameters",
        r"p_\text{quant}",
        "parameter",
        "Frozen parameters on a device that are quantised.",
    ),
    (
        "frozen_bytes",
        r"b_\text{frozen}",
        "B/parameter",
        "Bytes that store a frozen parameter, on average over a device.",
    ),
    (
        "parameters_dequantized",
        r"p_\text{deq}",
        "parameter",
        "Quantized parameters that a kernel turns into 16 bits.",
    ),
    (
        "dequantized_at_once",
        r"p_\text{once}",
        "parameter",
        "Quantized parameters that are in memory in 16 bits at one time.",
    ),
    # Work.
    (
        "frozen_multiply_adds",
        r"m_\text{frozen}",
        "MAC/sample",
        "Multiply-adds of the frozen matrices for one sequence, forward.",
    ),
    (
        "spared_multiply_adds",
        r"m_\text{spare}",
        "MAC/sample",
        "Multiply-adds of the backward pass below the first adapter, for one sequence.",
    ),
    (
        "adapter_multiply_adds",
        r"m_\text{LoRA}",
        "MAC/sample",
        "Multiply-adds of the adapters for one sequence, forward.",
    ),
    # What is sent.
    (
        "exchanged_frozen_parameters",
        r"p_{\leftrightarrow,\text{frozen}}",
        "parameter",
        "Frozen parameters on a device, each weighed by what is gathered of it.",
    ),
    (
        "frozen_gathers",
        r"n_{\cup,\text{frozen}}",
        "1",
        "How often frozen weights are gathered in a step.",
    ),
)
