"""What an answer says beside its numbers: whose constants it borrowed, and what it assumed.

A constant that matters, or an assumption that changes an answer by a tenth, has a line of its
own in the text, and an entry in JSON.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from mlsim.hardware import Device
from mlsim.hardware.kernel_constants import LEVELS, NOBODY, Loan
from mlsim.systems import Cluster, System
from mlsim.units import text

if TYPE_CHECKING:
    from mlsim.workloads.language import Transformer

# A part of the time that is worth a word.
TENTH = 0.1
# Which causes of a step's time each constant decides; of all others, any.
_CAUSES: Mapping[str, tuple[str, ...]] = {
    "compute_fraction": ("arithmetic",),
    "attention_fraction": ("arithmetic",),
    "memory_fraction": ("memory",),
    "tiling": ("tiles",),
    "exchange": ("network",),
}
# What a product reaches; who gives that borrows none of it.
OF_PRODUCTS = ("compute_fraction", "attention_fraction")
_ORDER = (*LEVELS, NOBODY)
# Of these modules a program sees each die as a device of its own.
_HALF = "one GCD"


def farthest(loans: Iterable[Loan]) -> tuple[Loan, ...]:
    """Return each constant once: of several formats, as it was lent from farthest."""
    found: dict[str, Loan] = {}
    for each in loans:
        known = found.get(each.constant)
        if known is None or _ORDER.index(known.kin.level) < _ORDER.index(each.kin.level):
            found[each.constant] = each
    return tuple(found.values())


def without_given(loans: Iterable[Loan], given: Mapping[str, Any]) -> list[Loan]:
    """Return loans without those of constants that were given."""
    products = OF_PRODUCTS if "compute_fraction" in given else ()
    return [each for each in loans if each.constant not in given and each.constant not in products]


def that_matter(loans: Iterable[Loan], causes: Mapping[str, float]) -> tuple[Loan, ...]:
    """Return the loans that decide at least a tenth of the time; and links without a start.

    What is sent over a link at its full rate may well take longer.

    >>> from mlsim.hardware.kernel_constants import Relatives
    >>> loan = Loan("memory_fraction", Relatives("sibling", ("Cloud.A100",)))
    >>> that_matter([loan], {"memory": 0.5}) == (loan,), that_matter([loan], {"memory": 0.05})
    (True, ())
    """
    return tuple(
        each
        for each in loans
        if each.constant not in _CAUSES
        or each.kin.level == NOBODY
        or sum(causes.get(name, 0.0) for name in _CAUSES[each.constant]) >= TENTH
    )


def told(loans: Iterable[Loan]) -> str:
    """Return loans in one line."""
    return "; ".join(each.words for each in loans)


def borrowed(loans: Iterable[Loan]) -> list[dict[str, Any]]:
    """Return loans for JSON: the constant, how near the lenders are, and their keys."""
    return [
        {
            "constant": each.constant,
            "words": each.words,
            "level": each.kin.level,
            "from": list(each.kin.keys),
        }
        for each in loans
    ]


def of_device(device: Device) -> Iterator[str]:
    """Yield what a name of a device may hide."""
    if _HALF in device.name:
        module = device.name.partition(",")[0]
        yield (
            f"{module}: one of its two dies (GCD), which a program sees as a device; a module "
            "has two"
        )


def of_hardware(hardware: Device | System | Cluster | None) -> Iterator[str]:
    """Yield through which network nodes send, where there are several."""
    if isinstance(hardware, Cluster):
        rate = text(8 * hardware.fabric_bandwidth / 1e9, "1")
        yield f"between nodes: {hardware.name}, {rate} Gb/s for each device"


def of_context(model: Transformer, tokens: float) -> Iterator[str]:
    """Yield that a sequence is longer than a model's configuration allows."""
    figure = model.figures.get("configured_context")
    if figure is None or tokens <= figure.si:
        return
    how = "states" if figure.kind == "given" else "leaves off"
    yield (
        f"context: beyond {figure.si:,.0f} tokens {model.name} needs YaRN, which its "
        f"config.json {how}; with it {model.context:,}"
    )
