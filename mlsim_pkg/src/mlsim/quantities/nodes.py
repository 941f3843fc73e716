"""What a service in several nodes is described by, and one in two pools of devices."""

ENTRIES: tuple[tuple[str, str, str, str], ...] = (
    # What is sent inside a node, and between nodes.
    (
        "ring_elements",
        r"l_\circ",
        "element/token",
        "Elements of each token that a device would send in one ring over its whole group.",
    ),
    (
        "exchange_elements",
        r"l_E",
        "element/token",
        "Elements of each token that a device sends to experts elsewhere, and back.",
    ),
    ("near_share", r"s_{in}", "1", "Share of what goes to experts that stays in the node."),
    # Sequences that devices share.
    (
        "token_live_elements",
        r"a_{l1}",
        "element/token",
        "Elements of activation alive for each token, on the device that works on it.",
    ),
    (
        "ring_cached_elements",
        r"c_\circ",
        "element/token",
        "Elements of keys and values of each token that devices may pass round.",
    ),
    (
        "ring_query_elements",
        r"q_\circ",
        "element/token",
        "Elements of queries and results of each token that devices may pass round instead.",
    ),
    (
        "ring_elements_sent",
        r"L_\circ",
        "element/sample",
        "Elements of a sequence that a device passes on, so that all its tokens see one another.",
    ),
    # Experts of which one device has more to do.
    (
        "expert_imbalance",
        r"f_E",
        "1",
        "Tokens that the busiest device with experts gets, over the mean of all of them.",
    ),
    ("routed_share", r"s_\rho", "1", "Share of an operator's tokens that depend on routing."),
    ("load_factor", r"f_o", "1", "Work of an operator on the busiest device, over the mean."),
    # Prefill and decode on separate devices.
    ("prefill_copies", r"N_\alpha", "1", "Copies of the model that only read prompts."),
    ("prefill_batch", r"B_\alpha", "sample", "Prompts that one of them reads together."),
    ("prefill_devices", r"g_\alpha", "1", "Devices of one copy that reads prompts."),
    ("decode_copies", r"N_\omega", "1", "Copies of the model that only decode."),
    ("decode_devices", r"g_\omega", "1", "Devices of one copy that decodes."),
    (
        "transfer_bytes",
        r"D_\kappa",
        "B/sample",
        "Cache of one prompt, which goes from the devices that read it to those that decode.",
    ),
    (
        "transfer_bandwidth",
        r"\beta_\kappa",
        "B/s",
        "Rate at which one device sends cache to another pool, one way.",
    ),
    ("transfer_streams", r"n_\kappa", "1", "Devices that send the cache of a prompt side by side."),
    ("transfer_time", r"t_\kappa", "s", "Time to send the cache of the prompts read together."),
    (
        "exposed_transfer_time",
        r"t_\kappa'",
        "s",
        "Part of that time in which nothing is computed for the request.",
    ),
    ("prefill_interval", r"t_\alpha", "s", "Time between two batches that a copy has read."),
    (
        "prefill_rate",
        r"\lambda_\alpha",
        "sample/s",
        "Prompts that the prefill pool reads a second.",
    ),
    ("decode_rate", r"\lambda_\omega", "sample/s", "Requests that the decode pool ends a second."),
    ("transfer_rate", r"\lambda_\kappa", "sample/s", "Caches that the links carry in a second."),
    ("split_rate", r"\lambda_s", "sample/s", "Requests that two pools answer together a second."),
    (
        "balanced_copies",
        r"N_\alpha^*",
        "1",
        "Copies that read prompts at which neither pool waits for the other.",
    ),
    ("pool_devices", r"g_s", "1", "Devices of both pools together."),
    ("device_throughput", r"\tau_g", "token/s", "New tokens per second for each device."),
    (
        "split_first_token",
        r"T_1^s",
        "s",
        "Mean time to the first token where a pool of its own reads the prompts.",
    ),
    (
        "pool_arrival_rate",
        r"\lambda_\Sigma",
        "1/s",
        "Requests that come each second to the pool that reads prompts.",
    ),
    ("reading_use", r"u_\alpha", "1", "Share of the time in which copies read prompts."),
    ("service_variance", r"v_q", "s**2", "Variance of the time that a server takes."),
    ("prompt_wait", r"W_\alpha", "s", "Mean time that a prompt waits for its turn in that pool."),
)
