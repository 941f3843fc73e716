"""Claims of `tutorials/feeding.qmd` that are loops."""

# "With an NVMe disk, neither disk nor link is the problem: decoding is."
assert eight_workers < supply["SATA disk"] < supply["NVMe disk"]

# A newer CPU lets no device wait longer, and a T4 does not wait at all.
assert all(starved(rate, eight_newer) <= starved(rate, eight_workers) for rate in wanted.values())
assert starved(wanted["T4"], eight_workers) == 0

# The all-reduce by hand agrees with the roofline's gradients on eight GPUs.
eight = Engine.train(**{**job, "estimate": "roofline"}, hardware=Systems.HGX_A100, devices=8)
assert 0.7 < by_ring.si / (eight.shares["gradients"] * eight.step_time.si) < 1.5

# "Lost ..., a little more than we predicted", and the band of a step misses the measurement.
assert said[256].si > seen[256].si > 0.9 * said[256].si
assert runs[1].step_time < band.low

# The largest learning rate is about 1.6 / (d + 0.5).
assert all(0.9 < largest_stable_rate(d) * (d + 0.5) / 1.6 < 1.1 for d in (1, 7, 63))
