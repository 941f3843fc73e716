"""Training by epochs: how long it lasts, and what it costs to need more memory than there is.

What does not fit is written to a disk and read back in each step. That is the least such a
step takes; where many small pages go to and fro, it takes far longer.
"""

from __future__ import annotations

from mlsim.equations.functions import ceil, maximum
from mlsim.equations.registry import equation

QUESTION = "How long do epochs take, and what if memory ends?"


@equation(source="hennessy2019quantitative")
def memory_excess(memory_free):
    """Memory that is needed beyond what there is; zero if all fits.

    Valid for a device that nothing else uses.

    >>> memory_excess(-2e9)
    2000000000.0
    >>> memory_excess(2e9)
    0.0
    """
    return maximum(-memory_free, 0 * memory_free)


@equation(source="hennessy2019quantitative")
def paging_time(memory_excess, disk_bandwidth):
    """Time in which what does not fit is written to a disk and read again, once a step.

    Assumes that the disk reads and writes at one rate, in one stream, while nothing else
    runs.
    Valid as a lower limit: a program that comes back to its pages moves them more often.

    >>> paging_time(2e9, 4e9)
    1.0
    """
    return 2 * memory_excess / disk_bandwidth


@equation(source="hennessy2019quantitative")
def paged_latency(latency, paging_time):
    """Time of a step that also waits for its pages.

    Assumes that nothing is computed meanwhile.
    Valid where pages are moved on demand.

    >>> paged_latency(0.5, 1.0)
    1.5
    """
    return latency + paging_time


@equation(source="goyal2017imagenet")
def epoch_steps(dataset_samples, batch_size):
    """Steps in which every sample of a data set is seen once; the last batch may be smaller.

    Valid for a data set of at least one sample.

    >>> epoch_steps(60000, 128)
    469.0
    """
    return ceil(dataset_samples / batch_size)


@equation(source="goyal2017imagenet")
def epochs_time(epochs, epoch_time):
    """Time of all epochs, once the time of one is known.

    Assumes that each takes as long as the first.
    Valid where nothing is evaluated or saved between them.

    >>> epochs_time(1000, 2.4)
    2400.0
    """
    return epochs * epoch_time


@equation(source="goyal2017imagenet")
def epoch_time(epoch_steps, paged_latency):
    """Time in which every sample of a data set is seen once.

    Assumes that the device never waits for its samples.
    Valid for steps that all take as long.

    >>> epoch_time(469, 0.005)
    2.345
    """
    return epoch_steps * paged_latency
