"""Claims of `tutorials/hardware_ecosystem.qmd` that are loops."""

# The largest tiles fit into the shared memory of one SM, and no larger ones do.
assert len(sides) == len(cases)
for each, (_, _, entry, cores, _, width) in zip(sides.values(), cases, strict=True):
    room = level(entry)["capacity"].si / cores
    assert machines.tile_bytes(each["largest"], width) <= room
    assert room < machines.tile_bytes(each["largest"] + 1, width)

# All three designs of a systolic array give the product.
for each in runs.values():
    assert (np.array(each.product) == np.array(inputs) @ np.array(weights)).all()

# The printed peak doubles with 2:4 zeros on all four devices.
for name in ("A100", "H100", "B200", "L4"):
    device = Hardware.find(name)
    assert 1.9 < show(device, "sparse.fp16") / device.compute.peak("fp16") < 2.1

# "Neither disk nor link is the problem: decoding is."
assert eight_workers < supply["Read", "SATA disk"] < supply["Read", "NVMe disk"]

# A newer CPU lets no device wait longer, and a T4 does not wait at all.
assert all(starved(rate, eight_newer) <= starved(rate, eight_workers) for rate in wanted.values())
assert starved(wanted["T4"], eight_workers) == 0
