"""What requests that arrive at a service are described by, and what their users see."""

_SHARES = (("p50", "half"), ("p90", "nine in ten"), ("p99", "99 in a hundred"))


def _percentiles(name: str, symbol: str, what: str) -> tuple[tuple[str, str, str, str], ...]:
    return tuple(
        (
            f"{name}_{key}",
            rf"{symbol}^{{({key[1:]})}}",
            "s",
            f"{what} that {share} of the requests do not exceed.",
        )
        for key, share in _SHARES
    )


ENTRIES: tuple[tuple[str, str, str, str], ...] = (
    # How requests come.
    ("arrival_rate", r"\lambda", "1/s", "Requests that arrive each second, on average."),
    ("users", r"N_u", "1", "Users who each wait for an answer before they ask again."),
    ("requests_followed", r"N_q", "1", "Requests whose times are counted."),
    ("copies", r"N_c", "1", "Copies of a model that share the requests."),
    # What a step does for them.
    ("output_steps", r"n_t", "1", "Decode steps of a request: a token each, after the first."),
    ("prompt_time", r"t_p", "s", "Time that the prompt of one request adds to the steps."),
    ("lone_prompt_time", r"t_0", "s", "Time of a step that reads one prompt and nothing else."),
    ("decode_step_time", r"t_d", "s", "Time of a decode step of the requests that run."),
    ("full_step_time", r"t_f", "s", "Time of a decode step with as many requests as may run."),
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
    ("saturation_share", r"\rho", "1", "Rate of arrivals as a share of what saturates."),
    ("request_rate", r"X", "1/s", "Requests that are answered each second."),
    ("request_latency", r"T_q", "s", "Time from the arrival of a request to its last token."),
    ("server_use", r"u_q", "1", "Share of the time in which a service works on a step."),
    ("stopped_requests", r"N_s", "1", "Requests that were stopped and computed again."),
    # A queue in general.
    ("service_time", r"s_q", "s", "Time that one request takes of a server that serves one."),
    ("service_variation", r"c_q^2", "1", "Variance of service times over their mean, squared."),
    ("queue_wait", r"W_q", "s", "Time that a request waits before it is served, on average."),
    *_percentiles("time_to_first_token", "T_1", "Time to the first token"),
    *_percentiles("time_per_output_token", r"\bar T", "Mean time between tokens of a request"),
    *_percentiles("request_latency", "T_q", "Time to the last token"),
)
