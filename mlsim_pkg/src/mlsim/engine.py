"""The front door: `Engine.solve` for a point or an array, `Engine.sweep` for a table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mlsim import zoo
from mlsim.errors import InvalidValueError
from mlsim.hardware import Device
from mlsim.precision import Precision, precision as find_precision
from mlsim.quantities import term
from mlsim.solvers import Configuration, Profile, Serving
from mlsim.solvers.formats import formats
from mlsim.solvers.forward import GIVABLE
from mlsim.solvers.inputs import check, check_given
from mlsim.systems import System
from mlsim.units import scaled
from mlsim.workloads import Model

if TYPE_CHECKING:
    import pandas


class Engine:
    """Predict what a model does on a device, before running it."""

    @staticmethod
    def solve(
        *,
        model: Model | str,
        hardware: Device | str,
        batch_size: Any = 1,
        precision: str | Precision = "fp16",
        estimate: str = "roofline",
        check_memory: bool = True,
        **given: Any,
    ) -> Profile:
        """Predict one forward pass of a model on one device.

        Parameters
        ----------
        model, hardware
            Records of the zoo, their names, or paths of TOML files.
        batch_size
            Samples per step: a whole number from 1 up, or a list or array.
        precision
            Number format of weights and activations, such as "fp16".
        estimate
            "roofline": operator by operator at datasheet rates (the default);
            "bound": the whole network at once, moving weights, input and output
            only. No published result on record beats it; it assumes direct
            convolutions and weights read from memory once a batch.
        check_memory
            Whether a workload that does not fit is refused its times.
        **given
            Any quantity of the vocabulary, to override what the data or the
            equations say: text or a quantity with a unit, or an array of them;
            for example memory_bandwidth="3 TB/s".

        Raises
        ------
        InvalidValueError, UnitError, UnknownNameError, WrongKindError
            If an argument can't be; says what is allowed.
        UnsupportedPrecisionError
            If the device has no peak for the precision.
        NotMeasuredError
            If a calibrated estimate lacks its measurements.

        >>> from mlsim import Hardware, Models
        >>> profile = Engine.solve(model=Models.ResNet50, hardware=Hardware.Cloud.A100,
        ...                        batch_size=[1, 256])
        >>> [round(float(share), 2) for share in profile.memory_bound_share]
        [0.84, 0.54]
        """
        configuration = Configuration(
            model=zoo.network(model),
            device=zoo.device(hardware),
            precision=find_precision(precision),
            estimate=estimate,
            batch_size=check("batch_size", batch_size, whole=True),
            given=check_given(given, GIVABLE) if given else {},
        )
        configuration.check_consistent()
        return Profile(configuration, check_memory=check_memory)

    @staticmethod
    def serve(
        *,
        model: Model | str,
        hardware: Device | System | str,
        batch_size: Any = 1,
        prompt_tokens: Any = 512,
        output_tokens: Any = None,
        precision: str | Precision | None = None,
        weights: str | Precision | None = None,
        activations: str | Precision | None = None,
        kv_cache: str | Precision | None = None,
        tensor_parallel: int = 1,
        pipeline_parallel: int = 1,
        data_parallel: int = 1,
        expert_parallel: int = 1,
        block_tokens: int = 16,
        chunk_tokens: int = 8192,
        reserve: float = 0.1,
        estimate: str = "roofline",
        check_memory: bool = True,
        **given: Any,
    ) -> Serving:
        """Predict what a language model's users wait for, and how many fit.

        A batch of prompts is read at once (prefill), and then each sequence gets
        one token a step (decode), operator by operator. Numbers may be arrays.

        Parameters
        ----------
        model
            A record of the zoo, its name, a TOML file, or the `config.json` of
            a model (or the folder that holds it).
        hardware
            A device, a system of devices, a name, or a TOML file.
        batch_size
            Sequences that are served together.
        prompt_tokens, output_tokens
            Length of each prompt, and new tokens for it (128 if left out; an
            encoder has none).
        precision
            Number format of weights, activations and KV cache; or a short name
            such as "w4a16" or "w8a8kv8". Left out: 16 bits, bf16 or, where the
            device has none, fp16.
        weights, activations, kv_cache
            The format of one of them, where it differs.
        tensor_parallel, pipeline_parallel, data_parallel, expert_parallel
            Devices that share each matrix; stages that share the layers; copies
            that share the batch; groups over which experts are spread, which lie
            within the first and the third.
        block_tokens
            Tokens in a block of the paged cache.
        chunk_tokens
            Most tokens of prompts that go through a layer together.
        reserve
            Share of each device's memory that is kept for everything else.
        estimate
            "roofline": operator by operator at datasheet rates (the default);
            "bound": each step at once, moving weights in use and the KV cache
            only, sending nothing. No published result on record beats it.
        check_memory
            Whether a service that does not fit is refused its times.
        **given
            Any quantity of the vocabulary, to override what the data or the
            equations say, such as memory_bandwidth="3 TB/s".

        Raises
        ------
        InvalidValueError, UnitError, UnknownNameError, WrongKindError
            If an argument can't be, a sequence is longer than the model's
            context, or a layout does not divide the model or the system.
        UnsupportedPrecisionError
            If the device can't compute in a format.
        NotMeasuredError
            If a calibrated estimate lacks its measurements.

        >>> serving = Engine.serve(model="Llama3_8B", hardware="H100", batch_size=[1, 64],
        ...                        prompt_tokens=2048)
        >>> [f"{time:.1f}" for time in serving.time_per_output_token.to("ms").magnitude]
        ['4.6', '9.9']
        """
        from mlsim.solvers.ask import service

        found = zoo.hardware(hardware)
        device = found if isinstance(found, Device) else found.device
        return Serving(
            service(
                model=zoo.transformer(model),
                hardware=found,
                batch_size=batch_size,
                prompt_tokens=prompt_tokens,
                output_tokens=output_tokens,
                formats=formats(precision, weights, activations, kv_cache, device=device),
                layout=(tensor_parallel, pipeline_parallel, data_parallel, expert_parallel),
                block_tokens=block_tokens,
                chunk_tokens=chunk_tokens,
                reserve=reserve,
                estimate=estimate,
                given=given,
            ),
            check_memory=check_memory,
        )

    @staticmethod
    def fit(
        *,
        model: Model | str,
        hardware: Device | System | str,
        prompt_tokens: Any = 512,
        output_tokens: Any = None,
        precision: Any = None,
        tensor_parallel: int | None = None,
        pipeline_parallel: int = 1,
        expert_parallel: int = 1,
        reserve: float = 0.1,
    ) -> pandas.DataFrame:
        """Tell in which number formats a language model fits, and what it then does.

        Returns a tidy table, one row per format. `weight_memory` (B) is that of
        each device; `largest_batch` counts sequences of these lengths, and
        `longest_context` the tokens of one sequence alone. Times (s) are those
        of one sequence, `tokens_per_second` that of the largest batch. What
        can't run is kept: `feasible` is False, and `reason` says by how many
        bytes and what would do instead.

        Parameters
        ----------
        precision
            A format or a list of them, as for `serve`. If it is left out, all
            that the device can compute in and that are worth trying; the KV
            cache in 16 bits, and in 8 where it is the cache that keeps a
            sequence from the model's full context.
        tensor_parallel
            Devices that share each matrix; as many as the system has and the
            model allows if it is left out.
        model, hardware, prompt_tokens, output_tokens, pipeline_parallel,
        expert_parallel, reserve
            As for `serve`.

        Raises
        ------
        MlsimError
            As `serve`, but a format in which the device can't compute is a row.

        >>> table = Engine.fit(model="Llama3_70B", hardware="H100")
        >>> [name for name in table[table.feasible].precision]
        ['w4a16', 'w4a16, KV fp8']
        """
        from mlsim.solvers.fit import question, rows
        from mlsim.solvers.fit_report import as_table

        asked = question(
            model=zoo.transformer(model),
            hardware=zoo.hardware(hardware),
            prompt_tokens=prompt_tokens,
            output_tokens=output_tokens,
            tensor_parallel=tensor_parallel,
            pipeline_parallel=pipeline_parallel,
            expert_parallel=expert_parallel,
            reserve=reserve,
        )
        return as_table(rows(asked, precision))

    @staticmethod
    def find(
        *,
        vary: str,
        target: str,
        value: Any,
        model: Model | str,
        hardware: Device | str,
        batch_size: Any = 1,
        precision: str | Precision = "fp16",
        estimate: str = "roofline",
        between: tuple[Any, Any] | None = None,
        **given: Any,
    ) -> Any:
        """Ask backwards, for the value of an input that gives a result.

        Parameters
        ----------
        vary
            The input that is looked for, such as "memory_bandwidth" or
            "batch_size".
        target, value
            The result that is wanted, and its value (with its unit, unless it
            is a count or a share).
        between
            Where to look, two values with units; a thousandth to a thousand
            times the known value otherwise, and for a batch 1 to a million.
        model, hardware, batch_size, precision, estimate, **given
            As for `solve`.

        Returns
        -------
        Quantity or int
            The smallest value that reaches the result; a batch is an int. Where
            the result jumps, the place of the jump.

        Raises
        ------
        UnreachableError
            If the result is not reached in the range; says what range of
            results it covers.

        >>> from mlsim import Hardware, Models
        >>> found = Engine.find(vary="memory_bandwidth", target="memory_bound_share",
        ...                     value=0.5, model=Models.ResNet50,
        ...                     hardware=Hardware.Cloud.A100, batch_size=256)
        >>> found > Hardware.Cloud.A100.memory.bandwidth
        True
        """
        from mlsim.solvers.inverse import find

        profile = Engine.solve(
            model=model,
            hardware=hardware,
            batch_size=batch_size,
            precision=precision,
            estimate=estimate,
            check_memory=False,
            **given,
        )
        if profile.configuration.shape:
            raise InvalidValueError("find looks for one value: give one batch, not an array.")
        wanted = float(check(target, value))
        limits = (check(vary, between[0]), check(vary, between[1])) if between else None
        found = find(profile.configuration, vary, target, wanted, limits)
        return int(found) if vary == "batch_size" else scaled(found, term(vary).unit)

    @staticmethod
    def sweep(
        *,
        model: Any,
        hardware: Any,
        batch_size: Any = 1,
        precision: Any = "fp16",
        estimate: str = "roofline",
    ) -> pandas.DataFrame:
        """Predict every combination of models, devices, batches and precisions.

        Each argument is one value or a list. Returns a tidy table, one row per
        combination, with latency in seconds and throughput in samples per
        second. Rows that can't run are kept: `feasible` is False, `reason` says
        why, and their times are missing.

        Raises
        ------
        MlsimError
            As `solve`, but a precision that a device lacks is a row.

        >>> from mlsim import Hardware, Models
        >>> table = Engine.sweep(model=Models.ResNet50, batch_size=[1, 8],
        ...                      hardware=[Hardware.Cloud.V100, Hardware.Cloud.A100])
        >>> len(table), bool(table.feasible.all())
        (4, True)
        """
        from mlsim.sweep import sweep

        return sweep(
            model=model,
            hardware=hardware,
            batch_size=batch_size,
            precision=precision,
            estimate=estimate,
        )
