"""Claims of `tutorials/reuse.qmd` that are loops."""

# The largest tiles fit into the shared memory of one SM, and no larger ones do.
assert len(sides) == len(cases)
for each, (_, _, entry, cores, _, width) in zip(sides.values(), cases, strict=True):
    room = level(entry)["capacity"].si / cores
    assert machines.tile_bytes(each["largest"], width) <= room
    assert room < machines.tile_bytes(each["largest"] + 1, width)

# All three designs of a systolic array give the product.
for each in runs.values():
    assert (np.array(each.product) == np.array(inputs) @ np.array(weights)).all()

# The blocks make the product, and read what the equation says.
for side in (2, 4, 8):
    made, read = in_blocks(a[:8, :8], b[:8, :8], side)
    assert np.allclose(made, a[:8, :8] @ b[:8, :8])
    assert read == machines.operand_reads(8, 8, 8, side)

# "Right ... as long as one", by the roofline and the estimate, too.
for estimate in ("roofline", "calibrated"):
    few, many = (Engine.gemm(m, 4096, 4096, hardware="H100", estimate=estimate) for m in (1, 64))
    assert many.latency / few.latency < 1.05
assert max(taken) / min(taken) < 1.1

# "At 3n half of its cycles are lost": of stationary weights, a full tile.
assert abs(array_cost(3 * 256, 256, 256, side=256).use - 0.5) < 0.01
