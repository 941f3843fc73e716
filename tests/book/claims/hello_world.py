"""Claims of hello_world.qmd that need sweeps, or answers that the page has no other use for."""

from math import isclose

# "Operators cross one by one": as many as are no longer memory-bound at batch 256, "fc" last.
assert len(sizes) == limited(profile) - limited(large)

# "The label never changes": on none of three devices at any batch, nor for a million images.
assert not any((curve.memory_bound_share < 0.5).any() for curve in curves.values())
assert huge.memory_bound_share > 0.5

# The totals: on the A100 "the memory total stays the larger at every batch".
a100 = curves[hardware]
assert (a100.total_compute_time < a100.total_memory_time).all()
assert huge.total_compute_time < huge.total_memory_time

# By the roofline, bandwidth is worth more than peak at both batches.
rates = [
    Engine.solve(model=model, hardware=hardware, batch_size=[1, 256], **change).throughput
    for change in upgrades.values()
]
assert (rates[0] > rates[1]).all()

# Activations on the chip: those of 11 images all fit, and then operators leave one by one.
eleven, twelve = (
    Engine.solve(
        model=model, hardware=hardware, batch_size=int(all_fit) + more, activations="on-chip"
    )
    for more in (0, 1)
)
assert eleven.activation_memory <= hardware.memory.l2 < twelve.activation_memory
assert eleven.total_bytes < traffic

# Only the last stage and the last layer still wait for memory, and the label stays turned back.
waiting = {row["name"][:5] for row in kept.operators if row["bound"] == "memory"}
assert waiting == {"conv5", "fc"}
assert on_chip.memory_bound_share[batches >= turns_back].min() > 0.5
assert isclose(both[256][0].latency.si, both[256][1].latency.si, rel_tol=1e-9)

# The working set of one image fits in the cache that the profile shows, and no weights do.
assert 22e6 < smallest.tensor_bytes.si < 22.5e6
assert smallest.tensor_bytes < second.tensor_bytes < traced_on.memory.l2

# From FP16 to INT8 and to TF32 "no label and no share can change".
for name in ("tf32", "int8"):
    share = formats[name].memory_bound_share
    assert isclose(share, formats["fp16"].memory_bound_share, rel_tol=1e-12)

# "None of the rows on record beats the bound", and all stay below the roofline.
assert all(row.published < predict(row, "bound").throughput for row in rows)
assert max(reached.values()) < 1
