"""A request that is asked of one batch after another: all that no batch changes is kept."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from functools import cached_property
from typing import Any

from mlsim.equations import plan
from mlsim.equations.graph import Run, fold
from mlsim.solvers.question import ARRAYS
from mlsim.solvers.serving.contexts import decode_contexts, filling_share
from mlsim.solvers.serving.phase import equations_for
from mlsim.solvers.serving.service import Service
from mlsim.solvers.serving.serving import Serving


class Remembered:
    """A request that was checked, and answered for some batch.

    Nothing may be given in it, since that could contradict another batch.

    >>> from mlsim import Engine
    >>> first = Engine.serve(model="Llama3_8B", hardware="H100", batch_size=8)
    >>> Remembered(first.service).answer(16.0).largest_batch == first.largest_batch
    True
    """

    def __init__(self, service: Service) -> None:
        self.service = service

    def answer(self, batch_size: Any, *, check_memory: bool = True) -> Serving:
        """Return the answer for another batch, a float or an array of them."""
        run = self._run if type(batch_size) is float else None
        return Serving(
            self.service.with_batch(batch_size),
            check_memory=check_memory,
            ready=run(batch_size) if run else None,
        )

    @cached_property
    def _run(self) -> Callable[[float], dict[str, float]] | None:
        """What is most asked for, as a function of the batch; None of arrays, and of rounds."""
        service = self.service
        one = not service.shape_with({"batch_size": 1.0}) and not service.switches.speculation
        return folded(service) if ARRAYS and one and not service.given else None


def folded(service: Service) -> Callable[[float], dict[str, float]]:
    """Return the times of all steps of one point, and its memory, as a function of its batch.

    To the last digit they are those of the steps run at once: what no batch changes is worked
    out before, and no sum is written otherwise.
    """
    import numpy as np

    contexts = decode_contexts(service) if service.model.decoder else {}
    worked, cached = service.prefill
    known = {name: value for name, value in service.known.items() if name != "batch_size"}
    columns = {
        **service.table.columns_2d,
        "new_tokens": np.array([worked, *(1.0 for _ in contexts)]),
        "cached_tokens": np.array([cached, *contexts.values()]),
    }
    first = {**service.table.columns_2d, "new_tokens": worked, "cached_tokens": cached}
    sizes, ends = ("batch_size", "device_batch"), ("time_to_first_token", "memory_free")
    of_device = _fold(service, known, sizes[:1], sizes[1:])
    steps = _fold(service, known | columns, sizes, ("latency",))
    around = _fold(service, known | first, (*sizes, "latency"), ends)
    whole = _whole(service, known, contexts) if contexts else None

    def run(batch_size: float) -> dict[str, float]:
        found = {"batch_size": batch_size}
        found["device_batch"] = of_device(found)["device_batch"]
        found["latency"], *later = steps(found)["latency"].tolist()
        ready = around(found)
        ready["latency"] = found["latency"]
        ready.update(zip(contexts, later, strict=True))
        if whole:
            ready.update(whole(ready))
        return ready

    return run


def _whole(service: Service, known: Mapping[str, Any], contexts: Collection[str]) -> Run:
    """Return the time of a token in the mean over an output, of the times of its steps."""
    share = {"filling_share": filling_share(service)} if service.model.window else {}
    return _fold(service, {**known, **share}, contexts, ("time_per_output_token",))


def _fold(
    service: Service, known: Mapping[str, Any], changing: Collection[str], wanted: tuple[str, ...]
) -> Run:
    """Fold the plan from what is known, and what changes, to what is wanted."""
    steps = plan(equations_for(service.variant), (*known, *changing), wanted)
    fixed, varied = steps.split(changing)
    values = {name: _one(value) for name, value in fixed.run(known).items()}
    return fold(varied, values, changing, written=True)


def _one(value: Any) -> Any:
    """Return an array of one number as that number, with which Python is faster."""
    return value.item() if getattr(value, "size", 0) == 1 else value
