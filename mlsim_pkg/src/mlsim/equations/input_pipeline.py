"""What brings samples to a device: a disk, workers that prepare them, and a link."""

from __future__ import annotations

from mlsim.equations.functions import minimum
from mlsim.equations.registry import equation

QUESTION = "Does the data keep up with the accelerator?"


@equation(source="mohan2021datastalls")
def read_rate(storage_bandwidth, stored_bytes):
    """Samples that a disk delivers, if it reads without a pause.

    Valid for a data set that memory does not hold: else it is read once and kept.

    >>> read_rate(5e8, 1e5)
    5000.0
    """
    return storage_bandwidth / stored_bytes


@equation(source="mohan2021datastalls")
def prepare_rate(load_workers, worker_rate):
    """Samples that all workers of a host prepare.

    Assumes that each worker has a core of its own, and none slows another.
    Valid up to the cores of the host.

    >>> prepare_rate(8, 600.0)
    4800.0
    """
    return load_workers * worker_rate


@equation(source="mohan2021datastalls")
def copy_rate(host_link_bandwidth, copied_bytes):
    """Samples that the link between host and device carries.

    Valid for large batches, sent from memory that the system does not move.

    >>> copy_rate(3e10, 1.5e5)
    200000.0
    """
    return host_link_bandwidth / copied_bytes


@equation(source="mohan2021datastalls")
def supply_rate(read_rate, prepare_rate, copy_rate):
    """Samples that arrive: a pipeline is as fast as its slowest stage.

    Assumes that the stages overlap, each with the next batch.
    Valid over many batches.

    >>> supply_rate(5000.0, 4800.0, 200000.0)
    4800.0
    """
    return minimum(minimum(read_rate, prepare_rate), copy_rate)


@equation(source="mohan2021datastalls", yields="fed_throughput")
def overlapped_throughput(supply_rate, throughput):
    """Samples that a device finishes while the next ones are prepared.

    Valid over many batches, with a batch in reserve.

    >>> overlapped_throughput(1500.0, 3000.0)
    1500.0
    """
    return minimum(supply_rate, throughput)


@equation(source="mohan2021datastalls", yields="fed_throughput")
def alternating_throughput(supply_rate, throughput):
    """Samples that are finished if preparing and computing take turns.

    Valid where the program that computes also prepares the samples.

    >>> alternating_throughput(1500.0, 3000.0)
    1000.0
    """
    return supply_rate * throughput / (supply_rate + throughput)


@equation(source="mohan2021datastalls")
def starved_share(fed_throughput, throughput):
    """Part of the time in which the device has nothing to work on.

    Valid over many batches.

    >>> starved_share(1000.0, 4000.0)
    0.75
    """
    return 1 - fed_throughput / throughput
