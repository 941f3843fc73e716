"""What a table of learned rows takes, of which a sample reads a few.

An embedding turns a number (of a word, a user, an article) into a row of a table.
A step reads the rows that are asked for, so the table has to lie in memory but is
not read through.
"""

from __future__ import annotations

from mlsim.equations.functions import total
from mlsim.equations.registry import equation

QUESTION = "What does a table take, of which a few rows are read?"


@equation(source="naumov2019dlrm", yields="weights_held")
def tables_held(weight_bytes, bytes_per_parameter, table_parameters):
    """Memory of all that an operator learned: what a step reads, and tables of rows.

    Assumes that rows are stored as the other parameters are.
    Valid for tables that lie in the device's main memory.

    >>> tables_held(100.0, 2.0, 1000)
    2100.0
    """
    return weight_bytes + bytes_per_parameter * table_parameters


@equation(source="naumov2019dlrm", yields="weight_memory", sums=True)
def held_memory(weights_held, repeats):
    """Memory of all parameters, those in tables included.

    Assumes one copy of the parameters.
    Valid for inference; training also keeps gradients and the state of the optimiser.

    >>> held_memory([2100.0, 200.0], [1, 2])
    2500.0
    """
    return total(weights_held, repeats)
