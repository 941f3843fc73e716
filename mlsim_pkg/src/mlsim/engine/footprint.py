"""`Engine.footprint`: the energy, carbon and water of a load."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mlsim.errors import UnknownArgumentError
from mlsim.hardware import Device
from mlsim.solvers.footprint.assemble import GIVABLE, Assembly, OnRecord, load_of
from mlsim.solvers.footprint.footprint import Footprint
from mlsim.solvers.footprint.surroundings import Shelves, where
from mlsim.systems import Cluster, System
from mlsim.zoo import resolve, spaces

if TYPE_CHECKING:
    from mlsim.infrastructure import CloudOperator, CloudRegion, DataCentre, Grid
    from mlsim.solvers.footprint.surroundings import Weights


def _weights() -> Weights:
    """Return the weights of power, from measured rows."""
    from mlsim.measured.power import weights

    return weights()


def _idle_share() -> tuple[float, int]:
    """Return idle over full power of the devices on record, and how many they are."""
    from mlsim.measured.power import idle_share

    return idle_share()


_ON_RECORD = OnRecord(
    places=Shelves(
        grids=spaces.Grids,
        regions=spaces.Regions,
        data_centres=spaces.DataCentres,
        operators=spaces.CloudOperators,
    ),
    systems=spaces.Systems,
    embodied=spaces.Embodied,
    hardware=resolve.cluster,
    weights=_weights,
    idle_share=_idle_share,
)


def footprint(
    work: Any = None,
    *,
    grid: Grid | str | None = None,
    data_centre: DataCentre | str | None = None,
    region: CloudRegion | str | None = None,
    pue: Any = None,
    wue: Any = None,
    carbon_intensity: Any = None,
    water_intensity: Any = None,
    year: int | None = None,
    hour: Any = None,
    accounting: str = "location",
    operator: CloudOperator | str | None = None,
    embodied: Any = None,
    host: Any = True,
    network: Any = None,
    hardware: Device | System | Cluster | str | None = None,
    device_hours: Any = None,
    **given: Any,
) -> Footprint:
    """Compute the energy, carbon and water of a training run, a service or device-hours.

    Computed from the power under the load outwards: devices, hosts, network, data
    center (PUE), electricity, water, and the manufacturing of the devices. A number
    may be a pair (low, high); the results are then intervals.

    Parameters
    ----------
    work
        A service (one point), a training run, or a `Load`.
    hardware, device_hours
        Instead of `work`, what is published about a run: its hardware, and a
        number of hours. Its power then lies between idle and full, unless
        `device_power` or both utilizations are given.
    grid, data_centre, region
        Where it runs: names or records. A region sets the grid, its intensity
        and the data center, where they are not given.
    pue, wue, carbon_intensity, water_intensity
        In place of what is on record, such as 1.1 and "350 gCO2e/kWh".
    year
        Of the figures; by default the last on record.
    hour
        Hour of the day at which it runs, or a list of hours: the grid's average
        intensity is scaled by the shape of its typical day.
    accounting, operator
        "location": what the grid generates; "market": by the operator's
        contracts, or for a grid the residual mix.
    embodied
        Carbon of manufacturing the devices: a record, or "150 kgCO2e" for each;
        False leaves it out; by default the record of the device if there is one.
    host
        True: the power of the system beside its devices; False: not counted;
        "150 W" for each device, or a system whose host it is.
    network
        Power of the switches between hosts, for each device; by default not
        counted.
    **given
        idle_power, max_power, device_power, compute_utilisation,
        memory_utilisation, lifetime, lifetime_use, tokens.

    Raises
    ------
    InvalidValueError, UnitError, UnknownNameError, WrongKindError
        If an argument is not allowed, or PUE, electricity or the host's power is
        unknown; says what to give, and what is on record.

    >>> from mlsim import Engine
    >>> serving = Engine.serve(model="Llama3_8B", hardware="H100", batch_size=64)
    >>> found = Engine.footprint(serving, data_centre="Google", grid="Germany",
    ...                          host=False)
    >>> found.device_energy < found.facility_energy
    True
    """
    for name in given:
        if name not in GIVABLE:
            raise UnknownArgumentError(name, GIVABLE)
    load = load_of(work, hardware, device_hours, _ON_RECORD)
    place = where(
        _ON_RECORD.places,
        grid=grid,
        region=region,
        data_centre=data_centre,
        operator=operator,
        year=year,
    )
    account = Assembly(load, given, _ON_RECORD).account(
        place,
        host=host,
        network=network,
        embodied=embodied,
        pue=pue,
        wue=wue,
        carbon_intensity=carbon_intensity,
        water_intensity=water_intensity,
        hour=hour,
        accounting=accounting,
    )
    return Footprint(account)
