"""Claims of hello_world.qmd that need sweeps, or answers that the page has no other use for."""

from math import isclose

# "Some of them cross the ridge point": none comes back, and 25 never do.
assert limited(huge) == limited(large) < limited(profile)

# Launches take less than half of the time at every larger batch, too.
assert (np.diff(real.overhead_share) < 0).all()

# Activations on the chip: only the last stage and the last layer still wait for memory, and from
# `turns_back` on the label stays turned back.
waiting = {row["name"][:5] for row in kept.operators if row["bound"] == "memory"}
assert waiting == {"conv5", "fc"}
assert on_chip.memory_bound_share[batches >= turns_back].min() > 0.5
assert isclose(both[256][0].latency.si, both[256][1].latency.si, rel_tol=1e-9)

# The working set of one image fits in half of the cache.
halved = Engine.solve(
    model=model, hardware=hardware, activations="on-chip", last_level_cache="20 MB"
)
assert halved.latency == kept.latency

# The cache that counts: 22 MB found room, 33 MB did not, and 42 MB are printed.
assert 22e6 < smallest.tensor_bytes.si < 22.5e6
assert smallest.tensor_bytes < second.tensor_bytes < traced_on.memory.l2

# From FP16 to INT8 each layer takes half the time, and no label changes.
eighth, usual = formats["int8"], formats["fp16"]
assert np.allclose(eighth.memory_bound_share, usual.memory_bound_share, rtol=1e-12)
assert np.allclose(usual.value("latency"), 2 * eighth.value("latency"), rtol=1e-12)

# "They disagree about the winner": so the page names none.
winners = [max(upgrades, key=lambda name: float(times(name, which, 1))) for which in (0, 1)]
assert winners == ["Twice the bandwidth", "Twice the peak"]

# "The step from the A100 to the H100 gains less" than compiling does, at either batch.
assert all(
    gain[at] < compiled[batch].published / eager[batch].published
    for at, batch in ((0, 1), (1, 256))
)

# "None of the rows on record beats the bound", and all stay below the roofline.
assert all(row.published < predict(row, "bound").throughput for row in rows)
assert max(reached.values()) < 1

# "So more layers wait for arithmetic than the datasheet says": programs reach more of the bandwidth than of the peak.
assert float(many.value("compute_fraction")[0]) < float(many.value("memory_fraction"))
assert (large.bottleneck, many.bottleneck) == ("Memory Bound", "Compute Bound")
