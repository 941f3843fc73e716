"""What requests that arrive at a service are described by, and what their users see."""

ENTRIES: tuple[tuple[str, str, str, str], ...] = (
    # How requests come.
    ("arrival_rate", r"\lambda", "1/s", "Requests that arrive each second, on average."),
    ("users", r"N_u", "1", "Users who each wait for an answer before they ask again."),
    # What a step does for them.
    ("output_steps", r"n_\tau", "1", "Decode steps of a request: a token each, after the first."),
    ("prompt_time", r"t_\pi", "s", "Time that the prompt of one request adds to the steps."),
    ("lone_prompt_time", r"t_0", "s", "Time of a step that reads one prompt and nothing else."),
    ("decode_step_time", r"t_d", "s", "Time of a decode step of the requests that run."),
    ("full_step_time", r"t_f", "s", "Time of a decode step with as many requests as may run."),
    ("full_prompt_time", r"t_\pi'", "s", "Time that a prompt adds to the steps of a full service."),
    ("running_limit", r"B_m", "1", "Most requests that run at one time."),
    # What follows.
    ("running_requests", r"B_q", "1", "Requests that run at one time, on average."),
    ("waiting_requests", r"L_q", "1", "Requests that wait to start, on average."),
    ("token_interval", r"t_t", "s", "Time between two tokens of a request, others' prompts in it."),
    ("interval_variance", r"v_t", "s**2", "Variance of the time between two tokens."),
    (
        "met_interval",
        r"t_m",
        "s",
        "Time of the step in which a request arrives, on average: long steps are met more often.",
    ),
    ("steady_first_token", r"T_1^*", "s", "Mean time to the first token, once nothing changes."),
    ("burst_first_token", r"T_1^b", "s", "Mean time to the first token of users who ask at once."),
    ("saturation_rate", r"\lambda_m", "1/s", "Requests each second beyond which the queue grows."),
    ("saturation_share", r"\rho_\lambda", "1", "Rate of arrivals as a share of what saturates."),
    ("request_rate", r"\lambda_o", "1/s", "Requests that are answered each second."),
    ("request_latency", r"T_q", "s", "Time from the arrival of a request to its last token."),
    ("server_use", r"u_q", "1", "Share of the time in which a service works on a step."),
    # What was seen in a run.
    ("answered_requests", r"N_q", "1", "Requests that were answered in a run."),
    ("run_span", r"t_\Delta", "s", "Time from the first request of a run to its last token."),
    ("stepping_time", r"t_\sigma", "s", "Time of a run that was spent in steps."),
    ("running_time", r"t_r", "s", "Time that requests ran, added up over all of them."),
    ("queued_time", r"t_w", "s", "Time that requests waited to start, added up over all."),
    ("cache_room", r"M_k", "B", "Memory of one device that is left for the KV cache."),
    # A queue in general.
    ("service_time", r"s_1", "s", "Time that one request takes of a server that serves one."),
    ("service_variation", r"c_q^2", "1", "Variance of service times over their mean, squared."),
    ("queue_wait", r"W_q", "s", "Time that a request waits before it is served, on average."),
    # A fleet, and its price.
    ("prompts_together", r"k_\pi", "1", "Prompts that are read in one step."),
    (
        "prompts_time",
        r"t_{k\pi}",
        "s",
        "Time of a step that only reads several prompts.",
    ),
    ("required_rate", r"\lambda_r", "sample/s", "Requests each second that a plan must serve."),
    (
        "replica_rate",
        r"\lambda_1",
        "sample/s",
        "Requests each second that one copy serves.",
    ),
    ("replicas", r"N_\rho", "1", "Copies of a service."),
    ("replica_devices", r"N_1", "1", "Devices of one copy."),
    ("fleet_devices", r"N_f", "1", "Devices of all copies."),
    ("fleet_price", r"c_f", "USD/s", "Price of all devices per time."),
    ("output_token_price", r"c_o", "USD/token", "Price of one generated token, prompts included."),
    ("token_price", r"c_\tau", "USD/token", "Price of one token, read or generated."),
    ("purchase_price", r"C_b", "USD", "What was paid for one device."),
    ("electricity_price", r"c_e", "USD/J", "Price of electricity."),
)
