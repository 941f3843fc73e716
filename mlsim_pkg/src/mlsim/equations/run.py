"""A whole training run: how long, what it costs, what failures take, how large a model."""

from __future__ import annotations

from mlsim.equations.functions import square_root
from mlsim.equations.registry import equation

QUESTION = "What does a training run take, and how large should its model be?"


@equation(source="chowdhery2022palm")
def computing_time(training_tokens, token_rate):
    """Time of a run in which nothing fails and nothing is written.

    Valid where each token is read once at a steady rate.

    >>> computing_time(3e12, 1e6)
    3000000.0
    """
    return training_tokens / token_rate


@equation(source="meta2024llama3")
def failure_interval(mean_time_to_failure, devices):
    """Mean time between failures of a run: any device that fails stops all.

    Assumes that devices fail independently, at a steady rate.
    Valid for a run without spare devices that take over.

    >>> failure_interval(1.8e8, 10000)
    18000.0
    """
    return mean_time_to_failure / devices


@equation(source="young1974first")
def checkpoint_time(checkpoint_bytes, checkpoint_bandwidth):
    """Time to write what a run needs to go on after a failure.

    Assumes that computing waits for it.
    Valid for one writer, or for many at the rate of all together.

    >>> checkpoint_time(1e12, 1e10)
    100.0
    """
    return checkpoint_bytes / checkpoint_bandwidth


@equation(source="young1974first")
def checkpoint_interval(checkpoint_time, failure_interval):
    """Time of computing between checkpoints that loses least.

    Too often, and writing takes the time; too seldom, and a failure does.

    Assumes that a checkpoint takes far less time than passes between failures.
    Valid to first order (Young); Daly adds terms that are small then.

    >>> checkpoint_interval(50.0, 10000.0)
    1000.0
    """
    return square_root(2 * checkpoint_time * failure_interval)


@equation(source="daly2006higher")
def goodput(checkpoint_time, checkpoint_interval, restart_time, failure_interval):
    """Part of the time in which a run gets on.

    Each interval costs a checkpoint; each failure costs a restart and, on average, half of
    an interval and of a checkpoint.

    Assumes that failures are seldom against the interval, and don't come during a restart.
    Valid while the loss is small.

    >>> goodput(250.0, 750.0, 500.0, 10000.0)
    0.675
    """
    return (
        checkpoint_interval
        / (checkpoint_interval + checkpoint_time)
        * (1 - (restart_time + (checkpoint_interval + checkpoint_time) / 2) / failure_interval)
    )


@equation(source="daly2006higher")
def training_time(computing_time, goodput):
    """Time of a whole run, with checkpoints, failures and restarts.

    Valid where the goodput is positive.

    >>> training_time(90.0, 0.9)
    100.0
    """
    return computing_time / goodput


@equation(source="chowdhery2022palm")
def device_time(training_time, devices):
    """Time of a run, counted for each of its devices: device-hours.

    Valid where all devices are held for the whole run.

    >>> device_time(3600.0, 8)
    28800.0
    """
    return training_time * devices


@equation(source="hennessy2019quantitative")
def training_cost(device_time, device_price):
    """Price of the devices of a run.

    Assumes that a device costs the same all the time.
    Valid for rented devices; storage, network and people are not in it.

    >>> training_cost(7200.0, 0.0005)
    3.6
    """
    return device_time * device_price


@equation(source="kaplan2020scaling")
def training_flops(flops_per_parameter_token, model_parameters, training_tokens):
    """Work of a run: six operations for each parameter and token.

    A multiply-add forward, and two backward.

    Assumes that attention is small against the matrices.
    Valid for sequences that are short against six times the width of the model.

    >>> training_flops(6.0, 1e9, 2e10)
    1.2e+20
    """
    return flops_per_parameter_token * model_parameters * training_tokens


@equation(source="hoffmann2022training")
def optimal_parameters(training_flops, flops_per_parameter_token, tokens_per_parameter):
    """Size of the dense model that learns most from this much work.

    Parameters and tokens grow alike, so their ratio stays as it is.

    Assumes that the ratio found by experiments holds at this size.
    Valid for one pass over good data; a model that will serve many is better smaller.

    >>> optimal_parameters(1.2e20, 6.0, 20.0)
    1000000000.0
    """
    return square_root(training_flops / (flops_per_parameter_token * tokens_per_parameter))


@equation(source="hoffmann2022training")
def optimal_tokens(optimal_parameters, tokens_per_parameter):
    """Tokens that such a model reads.

    Valid as the size is.

    >>> optimal_tokens(1e9, 20.0)
    20000000000.0
    """
    return optimal_parameters * tokens_per_parameter


@equation(source="kaplan2020scaling")
def flops_per_parameter_token(flops_per_multiply_add, training_multiply_adds):
    """Work of training for each parameter and token: six operations.

    A multiply-add forward, and two backward: for the gradients of inputs, and of weights.

    Assumes that attention is small against the matrices, and nothing is computed again.
    Valid for training of all weights.

    >>> flops_per_parameter_token(2.0, 3.0)
    6.0
    """
    return flops_per_multiply_add * training_multiply_adds


@equation(source="rajbhandari2020zero", yields="checkpoint_bytes")
def adam_checkpoint_bytes(all_parameters, bytes_per_parameter, state_bytes):
    """Size of a checkpoint: each parameter, and the optimizer's state of it.

    Assumes that no copy is written twice.
    Valid for any sharding; gradients are not written.

    >>> adam_checkpoint_bytes(1e9, 2.0, 12.0)
    14000000000.0
    """
    return all_parameters * (bytes_per_parameter + state_bytes)


@equation(source="hoffmann2022training")
def run_tokens_per_parameter(training_tokens, model_parameters):
    """Tokens of a run for each parameter that a token meets.

    Valid for one pass over the data or several.

    >>> run_tokens_per_parameter(2e10, 1e9)
    20.0
    """
    return training_tokens / model_parameters
