"""What a footprint needs and no record holds: it follows from figures that one does hold."""

from __future__ import annotations

from mlsim.equations.functions import maximum
from mlsim.equations.registry import equation

QUESTION = "What follows from the figures on record?"


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


@equation(source="esgmasterscope2")
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
