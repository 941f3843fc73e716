"""Operations as PyTorch calls them: arguments by name, and which of them need care."""

from __future__ import annotations

from typing import Any

import torch

from mlsim.workloads.pytorch.records import tensors_in
from mlsim.workloads.pytorch.shell import MOST_KEPT

# Operations whose result has another tensor's shape, and nothing of its numbers.
SHAPED_LIKE = frozenset(
    f"{first}_{last}"
    for first in ("zeros", "ones", "empty", "full", "rand", "randn")
    for last in ("like",)
) | {"new_zeros", "new_ones", "new_empty", "new_full", "new_empty_strided", "randint_like"}
# Operations whose result has a shape, or is a branch, that depends on numbers.
DEPENDS = frozenset(
    (
        *("_local_scalar_dense", "item", "is_nonzero", "nonzero", "nonzero_numpy", "argwhere"),
        *("masked_select", "_unique2", "unique_dim", "unique_consecutive", "bincount", "equal"),
        *("allclose", "histc", "_pack_padded_sequence"),
    )
)


class Call:
    """One operation that a module does: its arguments by name, and what came out."""

    def __init__(self, func: Any, args: Any, kwargs: Any, out: Any) -> None:
        schema = func._schema
        given = {each.name: each.default_value for each in schema.arguments}
        given |= {each.name: arg for each, arg in zip(schema.arguments, args, strict=False)}
        self.named: dict[str, Any] = {**given, **kwargs}
        self.operation = schema.name.partition("::")[2]
        # An operation with an underscore at its end writes over its input.
        self.in_place = schema.name.endswith("_") and not schema.name.endswith("__")
        self.name = self.operation.rstrip("_") if self.in_place else self.operation
        self.func, self.out = func, out

    def __getitem__(self, name: str) -> Any:
        return self.named.get(name)

    @property
    def first(self) -> torch.Tensor:
        """The first tensor that comes out."""
        return tensors_in(self.out)[0]


def is_composite(func: Any) -> bool:
    """Tell whether an operation is made of others and no view of its input."""
    returned = [each.alias_info for each in func._schema.returns]
    if any(each is not None and not each.is_write for each in returned):
        return False
    key = "CompositeImplicitAutograd"
    return bool(torch._C._dispatch_has_kernel_for_dispatch_key(func.name(), key))


def is_large(func: Any, args: Any, read: list[torch.Tensor]) -> bool:
    """Tell whether a new tensor would be too large to be filled."""
    sizes = [each for each in args if isinstance(each, (list, tuple, torch.Size))]
    count = 1
    for each in sizes[0] if sizes else ():
        if not isinstance(each, int):
            return False
        count *= each
    if not sizes and read:
        count = read[0].numel()
    return count > MOST_KEPT
