"""Energy of a load, from the device outwards: device, host, network, data centre."""

from __future__ import annotations

from mlsim.equations.functions import minimum
from mlsim.equations.registry import equation

QUESTION = "How much energy does it take?"


@equation(source="nvidia2026aiconfigurator", counts=True)
def power_load(
    running_power_weight,
    compute_power_weight,
    compute_utilisation,
    memory_power_weight,
    memory_utilisation,
):
    """Use of arithmetic and memory together, 1 where the device draws its full power.

    The weights are fitted to the measured power of kernels, not derived: a device that does
    four tenths of its peak arithmetic, or moves bytes at full rate, is at or near its limit
    of power. Running any kernel takes it part of the way.

    Assumes that the weights are those of the device.
    Valid for long loads; the first seconds draw more or less.

    >>> power_load(0.25, 2.0, 0.125, 0.5, 0.25)
    0.625
    >>> power_load(0.5, 2.0, 0.25, 0.5, 0.5)
    1
    """
    return minimum(
        running_power_weight
        + compute_power_weight * compute_utilisation
        + memory_power_weight * memory_utilisation,
        1,
    )


@equation(source="mlenergy2025", counts=True)
def power_share(power_load):
    """Part of the way from idle power to full power.

    It rises steeply at first: clocks go up, and parts wake, as soon as there is some work.

    Assumes a square whose slope is 0 at full load; the form is chosen to fit measured power.
    Valid from no load to a full one.

    >>> power_share(0.5)
    0.75
    """
    return power_load * (2 - power_load)


@equation(source="fan2007power")
def device_power(idle_power, max_power, power_share):
    """Power of a device under a load, between what it draws idle and at most.

    Valid for the average of a load; never less than the idle power.

    >>> device_power(100.0, 700.0, 0.5)
    400.0
    """
    return idle_power + (max_power - idle_power) * power_share


@equation(source="patterson2021carbon")
def device_energy(device_power, devices, working_time):
    """Energy of the devices of a load.

    Valid for equal devices that are held for the same time.

    >>> device_energy(400.0, 8, 3600.0)
    11520000.0
    """
    return device_power * devices * working_time


@equation(source="fan2007power")
def host_power(host_idle_power, host_max_power, power_share):
    """What a host draws for each device, in step with its devices.

    Assumes that processors, fans and power supplies rise with the devices.
    Valid where the power of the whole server is known, idle and at most.

    >>> host_power(100.0, 300.0, 0.5)
    200.0
    """
    return host_idle_power + (host_max_power - host_idle_power) * power_share


@equation(source="patterson2021carbon")
def host_energy(host_power, devices, working_time):
    """Energy of the hosts: processors, memory, fans, and losses of power supplies.

    Valid where each device has an equal share of its host.

    >>> host_energy(100.0, 8, 3600.0)
    2880000.0
    """
    return host_power * devices * working_time


@equation(source="patterson2021carbon")
def network_energy(network_power, devices, working_time):
    """Energy of the switches that join the hosts.

    Assumes that switches draw the same with and without traffic.
    Valid where each device has an equal share of the network.

    >>> network_energy(10.0, 8, 3600.0)
    288000.0
    """
    return network_power * devices * working_time


@equation(source="patterson2021carbon")
def it_energy(device_energy, host_energy, network_energy):
    """Energy of all machines.

    Valid where storage and other servers are counted elsewhere.

    >>> it_energy(8.0, 2.0, 1.0)
    11.0
    """
    return device_energy + host_energy + network_energy


@equation(source="patterson2021carbon")
def facility_energy(pue, it_energy):
    """Energy that the data centre takes: machines, cooling, and losses on the way.

    Assumes that the load has the average overhead of its data centre.
    Valid for a PUE from 1 up: the whole can't use less than its machines.

    >>> facility_energy(1.5, 100.0)
    150.0
    """
    return pue * it_energy


@equation(source="patterson2021carbon")
def energy_per_token(facility_energy, load_tokens):
    """Energy of the data centre for each token.

    Valid where all of the load is for these tokens.

    >>> energy_per_token(150.0, 100)
    1.5
    """
    return facility_energy / load_tokens


@equation(source="mlenergy2025")
def device_energy_per_token(device_energy, load_tokens):
    """Energy of the devices alone for each token, as power meters of devices tell.

    Valid where all of the load is for these tokens.

    >>> device_energy_per_token(100.0, 100)
    1.0
    """
    return device_energy / load_tokens
