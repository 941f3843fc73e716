"""Carbon and water of a load: of its electricity, and of making its devices."""

from __future__ import annotations

from mlsim.equations.registry import equation

QUESTION = "How much carbon and water does it take?"


@equation(source="patterson2021carbon")
def carbon_intensity(average_carbon_intensity, hour_factor):
    """What a unit of electricity emits at the hours at which a load runs.

    Assumes that each hour is as on the typical day of the grid.
    Valid for a load that runs at these hours on many days of the year.

    >>> carbon_intensity(1e-07, 1.5)
    1.5e-07
    """
    return average_carbon_intensity * hour_factor


@equation(source="esgmasterscope2", yields="carbon_intensity")
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
    """Water used in the data centre, most of it to cool.

    WUE is told for the energy of the machines, not for that of the whole facility.

    Assumes that the load has the average use of its data centre.
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
    """Water of the data centre and of the power stations.

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
