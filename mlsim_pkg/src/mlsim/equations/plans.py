"""How many machines a service needs, and what its tokens cost."""

from __future__ import annotations

from mlsim.equations.functions import ceil
from mlsim.equations.registry import equation

QUESTION = "Which machines does a service need, and what do its tokens cost?"


@equation(source="agrawal2024sarathi", yields="prompt_time")
def further_prompt_time(prompts_time, lone_prompt_time, prompts_together):
    """Time that each further prompt adds to a step, from a step with one and one with several.

    Valid where prompts are read together, within the tokens of a step.

    >>> further_prompt_time(7.0, 1.0, 4.0)
    2.0
    """
    return (prompts_time - lone_prompt_time) / (prompts_together - 1)


@equation(source="kleinrock1975queueing", yields="arrival_rate")
def users_rate(users, think_time, request_latency):
    """Requests each second of users who wait for an answer, think, and ask again.

    Little's law of the whole circle: each user is in it once.

    Valid for the mean, whatever the distributions.

    >>> users_rate(2000.0, 10.0, 6.0)
    125.0
    """
    return users / (think_time + request_latency)


@equation(source="kleinrock1975queueing")
def replicas(required_rate, replica_rate):
    """Copies of a service that a rate of requests needs, each at the rate that it serves.

    Valid where requests are spread evenly over the copies.

    >>> replicas(25.0, 10.0)
    3.0
    """
    return ceil(required_rate / replica_rate)


@equation(source="kleinrock1975queueing")
def replica_load(required_rate, replicas):
    """Requests each second of one copy of a service.

    Valid where requests are spread evenly over the copies.

    >>> replica_load(30.0, 5.0)
    6.0
    """
    return required_rate / replicas


@equation(source="kleinrock1975queueing")
def fleet_devices(replicas, replica_devices):
    """Devices of all copies together.

    Valid for copies of one layout.

    >>> fleet_devices(3.0, 8.0)
    24.0
    """
    return replicas * replica_devices


@equation(source="barroso2018datacenter")
def fleet_price(fleet_devices, device_price):
    """Price of all devices per time, whether they are busy or not.

    Valid for devices that are rented, or paid off evenly over their years.

    >>> fleet_price(24.0, 0.001)
    0.024
    """
    return fleet_devices * device_price


@equation(source="barroso2018datacenter", yields="fleet_price")
def pools_price(prefill_price, decode_price):
    """Price of both pools per time, whether they are busy or not.

    Valid for pools that are rented, or paid off, for the same time.

    >>> pools_price(0.5, 1.5)
    2.0
    """
    return prefill_price + decode_price


@equation(source="barroso2018datacenter", yields="prompt_share")
def pool_share(prefill_price, fleet_price):
    """Share of the bill that reads prompts, where they have devices of their own.

    Valid for two pools.

    >>> pool_share(0.5, 2.0)
    0.25
    """
    return prefill_price / fleet_price


@equation(source="barroso2018datacenter")
def output_token_price(fleet_price, required_rate, output_tokens):
    """Price of one generated token, with the prompt's part in it.

    Valid where requests come at the required rate all the time; at half of it a token costs
    twice as much.

    >>> output_token_price(0.5, 10.0, 100.0)
    0.0005
    """
    return fleet_price / (required_rate * output_tokens)


@equation(source="barroso2018datacenter")
def token_price(fleet_price, required_rate, prompt_tokens, output_tokens):
    """Price of one token, read or generated: the bill over all tokens.

    Valid where requests come at the required rate all the time.

    >>> token_price(0.5, 10.0, 300.0, 100.0)
    0.000125
    """
    return fleet_price / (required_rate * (prompt_tokens + output_tokens))


@equation(source="agrawal2024sarathi")
def prompt_share(saturation_rate, full_prompt_time):
    """Share of a full service's time in which it reads prompts: how many come, times each.

    Valid for a service that is always full; the rest of its time generates.

    >>> prompt_share(4.0, 0.0625)
    0.25
    """
    return saturation_rate * full_prompt_time


@equation(source="barroso2018datacenter")
def prompt_token_price(fleet_price, prompt_share, required_rate, prompt_tokens):
    """Price of one token of a prompt: the part of the bill in which prompts are read.

    Assumes that the bill is split as the time is.
    Valid where requests come at the required rate all the time.

    >>> prompt_token_price(0.5, 0.25, 10.0, 100.0)
    0.000125
    """
    return fleet_price * prompt_share / (required_rate * prompt_tokens)


@equation(source="barroso2018datacenter")
def answer_token_price(fleet_price, prompt_share, required_rate, output_tokens):
    """Price of one generated token: the part of the bill in which no prompt is read.

    Assumes that the bill is split as the time is.
    Valid where requests come at the required rate all the time.

    >>> answer_token_price(0.5, 0.25, 10.0, 100.0)
    0.000375
    """
    return fleet_price * (1 - prompt_share) / (required_rate * output_tokens)


@equation(source="barroso2018datacenter", yields="device_price")
def owned_device_price(purchase_price, device_lifetime, max_power, pue, electricity_price):
    """What a device costs per time that was bought: its price over its life, and electricity.

    Assumes that it is used for all of its life, and that money has no interest.
    Valid with the share of host, network and building in the price, or without them.

    >>> owned_device_price(32.0, 2.0, 4.0, 1.5, 3.0)
    34.0
    """
    return purchase_price / device_lifetime + max_power * pue * electricity_price
