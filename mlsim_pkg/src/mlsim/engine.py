"""The front door: `Engine.solve` for a point or an array, `Engine.sweep` for a table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mlsim import zoo
from mlsim.errors import InvalidValueError
from mlsim.hardware import Device
from mlsim.precision import Precision, precision as find_precision
from mlsim.quantities import term
from mlsim.solvers import Configuration, Footprint, Profile, Serving, Training
from mlsim.solvers.formats import formats
from mlsim.solvers.forward import givable
from mlsim.solvers.inputs import check, check_given
from mlsim.systems import Cluster, System
from mlsim.units import scaled
from mlsim.workloads import Model

if TYPE_CHECKING:
    import pandas

    from mlsim.infrastructure import CloudRegion, DataCentre, Grid, Operator
    from mlsim.solvers.optimal import OptimalSize


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
            convolutions and weights read from memory once a batch;
            "calibrated": operator by operator at the rates that were measured
            on the device, with a start for each.
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
            If nobody measured products and streams on the device, for a
            calibrated estimate.

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
            given=check_given(given, givable(estimate)) if given else {},
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
            only, sending nothing. No published result on record beats it;
            "calibrated": operator by operator at the rates that were measured
            on the device and its links, with a start for each.
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
            If nobody measured products and streams on the device, or
            all-reduces over its links, for a calibrated estimate.

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
    def train(
        *,
        model: Model | str,
        system: Device | System | Cluster | str,
        global_batch: Any,
        devices: int | None = None,
        micro_batch: Any = 1,
        sequence_tokens: Any = None,
        tokens: Any = None,
        precision: str | Precision = "bf16",
        gradients: str | Precision | None = None,
        tensor_parallel: int = 1,
        pipeline_parallel: int = 1,
        data_parallel: int | None = None,
        context_parallel: int = 1,
        expert_parallel: int = 1,
        interleaved: int = 1,
        sequence_parallel: bool = False,
        shard: str = "none",
        recompute: str = "selective",
        attention: str = "flash",
        dropout: bool = False,
        overlap: Any = 0.0,
        collective: str = "auto",
        mean_time_to_failure: Any = None,
        checkpoint_bandwidth: Any = None,
        restart_time: Any = None,
        price: Any = None,
        reserve: float = 0.1,
        estimate: str = "roofline",
        search: bool = False,
        check_memory: bool = True,
        **given: Any,
    ) -> Training:
        """Predict what training a language model takes: time, memory, and a whole run.

        Kernel by kernel: each operator forward, again if its result was not kept,
        and backward; what devices send; the pipeline; the update.

        Parameters
        ----------
        model
            As for `serve`.
        system
            A device, a system, a cluster, a name, or a TOML file.
        global_batch, micro_batch
            Sequences after which weights are updated; sequences that a device
            takes through at one time.
        devices
            How many train together; as many as the parallel sizes make if left out.
        sequence_tokens
            Tokens of a sequence; 4,096 if left out, or the model's context if it is shorter.
        tokens
            Tokens of the whole run, for its days, device-hours and cost.
        precision, gradients
            Format of computing ("fp8": matrices of layers only, all else is kept
            in 16 bits), and of gradients (as the weights if left out).
        tensor_parallel, pipeline_parallel, data_parallel, context_parallel,
        expert_parallel, interleaved, sequence_parallel
            Devices that share each matrix; stages; copies (what the devices leave
            if left out); devices that share each sequence; groups over which
            experts are spread; parts of the model on each stage; whether what lies
            between matrices is divided as well.
        shard
            What copies divide: "none", "zero1" (optimizer state), "zero2" (and
            gradients), "zero3" (and weights, as in FSDP).
        recompute
            "none", "selective" (what lies between the products of attention), "full".
        attention, dropout
            "flash", or "standard", whose scores go through memory; whether there is
            dropout.
        overlap
            Part of sending that hides behind computing: a share, or one each of
            "exchange" (within a stage), "pipeline" and "gradient". None by default.
        collective
            "ring", "hierarchical" or "tree"; "auto" is a ring within a node, and
            two levels beyond it.
        mean_time_to_failure, checkpoint_bandwidth, restart_time
            Of one device, of all together, and until computing goes on, with their
            units; without the first, no failures are counted.
        price
            Of one device, such as "2 USD/h".
        reserve
            Share of each device's memory that is kept for everything else.
        estimate
            "roofline" (datasheet rates, nothing to start) or "calibrated".
        search
            Whether to look for the fastest layout that fits, in place of the one
            given; tensor, pipeline and data parallelism, micro-batch, interleaving,
            sharding and recomputation are varied.
        check_memory
            Whether a run that does not fit is refused its times.
        **given
            Any quantity of the vocabulary, to override what the data or the
            equations say.

        Raises
        ------
        InvalidValueError, UnitError, UnknownNameError, WrongKindError
            If an argument can't be, or sizes don't divide model, batch or devices.
        DoesNotFitError
            If no layout fits, or times are asked of a run that does not fit.
        UnsupportedPrecisionError, NotMeasuredError
            As for `serve`.

        >>> training = Engine.train(model="Llama3_8B", system="HGX_H100", global_batch=64,
        ...                         sequence_tokens=8192, devices=8, shard="zero3",
        ...                         recompute="full")
        >>> f"{training.step_time:.1f}"
        '5.7 s'
        """
        from mlsim.solvers.training_ask import Asked, run
        from mlsim.solvers.training_search import search as find_layout

        asked = Asked(
            model=zoo.transformer(model),
            system=zoo.cluster(system),
            devices=devices,
            global_batch=global_batch,
            micro_batch=micro_batch,
            sequence_tokens=sequence_tokens,
            tokens=tokens,
            precision=precision,
            gradients=gradients,
            tensor_parallel=tensor_parallel,
            pipeline_parallel=pipeline_parallel,
            data_parallel=data_parallel,
            context_parallel=context_parallel,
            expert_parallel=expert_parallel,
            interleaved=interleaved,
            sequence_parallel=sequence_parallel,
            shard=shard,
            recompute=recompute,
            attention=attention,
            dropout=dropout,
            overlap=overlap,
            collective=collective,
            mean_time_to_failure=mean_time_to_failure,
            checkpoint_bandwidth=checkpoint_bandwidth,
            restart_time=restart_time,
            price=price,
            reserve=reserve,
            estimate=estimate,
            given=given,
        )
        return find_layout(asked) if search else Training(run(asked), check_memory=check_memory)

    @staticmethod
    def optimal_size(*, training_flops: Any, tokens_per_parameter: Any = None) -> OptimalSize:
        """Tell how large a dense model should be for an amount of work, and its tokens.

        Parameters
        ----------
        training_flops
            Work of the whole run, such as "1e24 FLOP".
        tokens_per_parameter
            Their ratio, such as "20 token/parameter"; what experiments found best if
            it is left out.

        Raises
        ------
        InvalidValueError, UnitError
            If a value can't be.

        >>> print(Engine.optimal_size(training_flops="1.2e20 FLOP"))
        1.2e+20 FLOP train 1 billion parameters on 20 billion tokens
        """
        from mlsim.solvers.optimal import optimal_size

        return optimal_size(training_flops, tokens_per_parameter)

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

    @staticmethod
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
        operator: Operator | str | None = None,
        embodied: Any = None,
        host: Any = True,
        network: Any = None,
        hardware: Device | System | Cluster | str | None = None,
        device_hours: Any = None,
        **given: Any,
    ) -> Footprint:
        """Reckon the energy, carbon and water of a training run, a service or device-hours.

        From power under the load outwards: devices, hosts, network, data centre (PUE),
        electricity, water, and the making of the devices. Numbers may be pairs
        (low, high); the results are then intervals.

        Parameters
        ----------
        work
            A service (one point), a training run, or a `Load`.
        hardware, device_hours
            In place of it, what is published of a run: its hardware, and a number
            of hours. Nothing is known of its power then but idle and full, unless
            `device_power` or both utilisations are given.
        grid, data_centre, region
            Where it runs: names or records. A region sets the grid, its intensity
            and the data centre, where they are not given.
        pue, wue, carbon_intensity, water_intensity
            In place of what is on record, such as 1.1 and "350 gCO2e/kWh".
        year
            Of the figures; the last on record if left out.
        hour
            Hour of the day at which it runs, or a list of them: the shape of the
            grid's typical day, times its average.
        accounting, operator
            "location": what the grid generates; "market": by contracts, of the
            operator, or for a grid the residual mix.
        embodied
            Record of making the devices, or "150 kgCO2e" for each; False leaves it
            out; left out, the record of the device if there is one.
        host
            True: the power of the system beside its devices; False: not counted;
            "150 W" for each device, or a system whose host it is.
        network
            Power of switches between hosts for each device; not counted if left out.
        **given
            idle_power, max_power, device_power, compute_utilisation,
            memory_utilisation, lifetime, lifetime_use, tokens.

        Raises
        ------
        InvalidValueError, UnitError, UnknownNameError, WrongKindError
            If something can't be, or PUE, electricity or the host's power is not
            known; says what to give, and what is on record.

        >>> serving = Engine.serve(model="Llama3_8B", hardware="H100", batch_size=64)
        >>> found = Engine.footprint(serving, data_centre="Google", grid="Germany",
        ...                          host=False)
        >>> found.device_energy < found.energy
        True
        """
        from mlsim.accounts import footprint

        return footprint(
            work,
            hardware=hardware,
            device_hours=device_hours,
            places={
                "grid": grid,
                "region": region,
                "data_centre": data_centre,
                "operator": operator,
                "year": year,
            },
            pue=pue,
            wue=wue,
            carbon_intensity=carbon_intensity,
            water_intensity=water_intensity,
            hour=hour,
            accounting=accounting,
            embodied=embodied,
            host=host,
            network=network,
            given=given,
        )
