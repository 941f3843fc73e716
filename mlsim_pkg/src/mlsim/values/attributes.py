"""Results and figures as attributes: one line each, known to editors and to mypy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, overload

if TYPE_CHECKING:
    from mlsim.values.kinds import Plain, Quantity


class result(property):  # noqa: N801 - it stands where @property would
    """A result of an answer by its name in the vocabulary, or a figure of a place: a value.

    Of an answer with many points it is an array with its unit. What is refused is refused
    as by the owner's `quantity(name)`.
    """

    kind = "Quantity"

    def __init__(self, words: str) -> None:
        super().__init__()
        self._words = words

    def __set_name__(self, owner: type, name: str) -> None:
        def get(owner: Any) -> Any:
            return owner.quantity(name)

        get.__doc__, get.__name__, get.__annotations__ = self._words, name, {"return": self.kind}
        super().__init__(get)

    if TYPE_CHECKING:

        @overload
        def __get__(self, answer: None, owner: type | None = None) -> result: ...

        @overload
        def __get__(self, answer: Any, owner: type | None = None) -> Quantity: ...

        def __get__(self, answer: Any, owner: type | None = None) -> Any: ...


class count(result):  # noqa: N801
    """The same of a count, a share or a rate per second, which is a float as well."""

    kind = "Plain"

    if TYPE_CHECKING:

        @overload
        def __get__(self, answer: None, owner: type | None = None) -> count: ...

        @overload
        def __get__(self, answer: Any, owner: type | None = None) -> Plain: ...

        def __get__(self, answer: Any, owner: type | None = None) -> Any: ...
