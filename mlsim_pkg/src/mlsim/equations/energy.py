"""Energy of a load, from the device outwards: device, host, network, data center."""

from __future__ import annotations

from mlsim.equations.functions import maximum, minimum
from mlsim.equations.registry import Topic

ENERGY = equation = Topic("energy", "How much energy does it take?")


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
    """Energy that the data center takes: machines, cooling, and losses on the way.

    Assumes that the load has the average overhead of its data center.
    Valid for a PUE from 1 up: the whole can't use less than its machines.

    >>> facility_energy(1.5, 100.0)
    150.0
    """
    return pue * it_energy


@equation(source="patterson2021carbon")
def energy_per_token(facility_energy, load_tokens):
    """Energy of the data center for each token.

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


FOOTPRINT = equation = Topic("footprint", "How much carbon and water does it take?")


@equation(source="patterson2021carbon")
def carbon_intensity(average_carbon_intensity, hour_factor):
    """What a unit of electricity emits at the hours at which a load runs.

    Assumes that each hour is as on the typical day of the grid.
    Valid for a load that runs at these hours on many days of the year.

    >>> carbon_intensity(1e-07, 1.5)
    1.5e-07
    """
    return average_carbon_intensity * hour_factor


@equation(source="ghgprotocol2015scope2", yields="carbon_intensity")
def contract_carbon_intensity(average_carbon_intensity, contract_factor):
    """What a unit of electricity emits by an operator's contracts (market-based).

    The operator's two ways of counting one year give the factor.

    Assumes that its contracts cover the same part on each grid.
    Valid for the year of its report.

    >>> contract_carbon_intensity(1e-07, 0.5)
    5e-08
    """
    return average_carbon_intensity * contract_factor


@equation(source="patterson2021carbon")
def operational_carbon(carbon_intensity, facility_energy):
    """Emissions of the electricity that a load uses.

    Valid for an average intensity; what one more load adds to a grid is another quantity.

    >>> operational_carbon(1e-07, 1e9)
    100.0
    """
    return carbon_intensity * facility_energy


@equation(source="gupta2022act")
def embodied_carbon(embodied_per_device, devices, working_time, device_lifetime, lifetime_use):
    """Share of a load in the emissions of making its devices.

    Each hour of use takes an equal part of them; hours in which nobody uses the device
    are borne by those in which somebody does.

    Assumes that lifetime and use are known in advance.
    Valid for a load much shorter than the lifetime.

    >>> embodied_carbon(150.0, 8, 1000.0, 100000.0, 0.5)
    24.0
    """
    return embodied_per_device * devices * working_time / (device_lifetime * lifetime_use)


@equation(source="gupta2022act")
def total_carbon(operational_carbon, embodied_carbon):
    """Emissions of the electricity, and the share in those of making the devices.

    Valid where both count the same gases.

    >>> total_carbon(100.0, 24.0)
    124.0
    """
    return operational_carbon + embodied_carbon


@equation(source="li2023thirsty")
def site_water(wue, it_energy):
    """Water used in the data center, most of it to cool.

    WUE is told for the energy of the machines, not for that of the whole facility.

    Assumes that the load has the average use of its data center.
    Valid for the year of the WUE; a hot day takes more.

    >>> site_water(5e-07, 1e9)
    500.0
    """
    return wue * it_energy


@equation(source="li2023thirsty")
def source_water(water_intensity, facility_energy):
    """Water consumed where the electricity is made.

    Valid for water that is consumed, not for what is taken from a river and given back.

    >>> source_water(1e-06, 1e9)
    1000.0
    """
    return water_intensity * facility_energy


@equation(source="li2023thirsty")
def total_water(site_water, source_water):
    """Water of the data center and of the power stations.

    Valid where both count the same kind of use.

    >>> total_water(500.0, 1000.0)
    1500.0
    """
    return site_water + source_water


@equation(source="gupta2022act")
def carbon_per_token(total_carbon, load_tokens):
    """Emissions for each token.

    Valid where all of the load is for these tokens.

    >>> carbon_per_token(124.0, 100)
    1.24
    """
    return total_carbon / load_tokens


@equation(source="li2023thirsty")
def water_per_token(total_water, load_tokens):
    """Water for each token.

    Valid where all of the load is for these tokens.

    >>> water_per_token(1500.0, 100)
    15.0
    """
    return total_water / load_tokens


FROM_RECORDS = equation = Topic("from_records", "What follows from the figures on record?")


@equation(source="fan2007power", yields="idle_power")
def estimated_idle_power(idle_share, max_power):
    """Power of an idle device of which nobody published it, as a share of its full power.

    Assumes that the device is like those that were measured.
    Valid as an estimate for accelerators in servers.

    >>> estimated_idle_power(0.125, 400.0)
    50.0
    """
    return idle_share * max_power


@equation(source="fan2007power", yields="host_idle_power", counts=True)
def host_share_idle(server_idle_power, server_devices, idle_power):
    """What an idle host draws for each device: the server's share, less the device itself.

    Valid for servers measured with their devices; never below zero.

    >>> host_share_idle(1600.0, 8, 50.0)
    150.0
    >>> host_share_idle(1600.0, 8, 300.0)
    0
    """
    return maximum(server_idle_power / server_devices - idle_power, 0)


@equation(source="fan2007power", yields="host_max_power")
def host_share_max(server_max_power, server_devices, max_power):
    """Most that a host draws for each device: the server's share, less the device itself.

    Assumes that host and devices draw most at the same time.
    Valid for servers whose full power includes their devices.

    >>> host_share_max(8000.0, 8, 700.0)
    300.0
    """
    return server_max_power / server_devices - max_power


@equation(source="gupta2022act", yields="embodied_per_device")
def embodied_share(embodied_server, server_devices):
    """Share of one device in the emissions of making its server.

    Assumes that each device has an equal share of all else in the server.
    Valid for servers whose devices are alike.

    >>> embodied_share(1200.0, 8)
    150.0
    """
    return embodied_server / server_devices


@equation(source="patterson2021carbon")
def hour_factor(hours_intensity, day_intensity):
    """Carbon intensity of the hours of a load, per that of the whole day.

    Assumes that the shape of the day is the same all year.
    Valid for a load that runs at the same hours each day.

    >>> hour_factor(300.0, 400.0)
    0.75
    """
    return hours_intensity / day_intensity


@equation(source="ghgprotocol2015scope2")
def contract_factor(market_emissions, location_emissions):
    """Emissions by an operator's contracts, per emissions of the same electricity by its grids.

    Assumes that contracts cover all places alike.
    Valid for the year of the report.

    >>> contract_factor(25.0, 100.0)
    0.25
    """
    return market_emissions / location_emissions


@equation(source="mlenergy2025")
def utilisation(busy_time, working_time):
    """Share of the peak rate that a load uses: time at the full rate, over the time it takes.

    Valid from 0 to 1; for arithmetic and for memory alike.

    >>> utilisation(30.0, 120.0)
    0.25
    """
    return busy_time / working_time


@equation(source="mlenergy2025")
def busy_time(utilisation, working_time):
    """Time that the same work would take at the full rate.

    Valid for arithmetic and for memory alike.

    >>> busy_time(0.25, 120.0)
    30.0
    """
    return utilisation * working_time


@equation(source="patterson2021carbon", yields="working_time")
def equal_working_time(device_time, devices):
    """Time for which each device is held, from device-hours.

    Valid where all devices are held for the same time.

    >>> equal_working_time(28800.0, 8)
    3600.0
    """
    return device_time / devices
