"""Claims of capacity.qmd that need loops over its simulations."""

# "The bound says what no program can beat": no measured time per token is below it.
for row in beside.values():
    assert row["bound"].time_per_output_token < row["measured"].time_per_output_token

# The knee: the mean wait grows with the load, and who is last of a hundred waits longer.
for runs in (alike, mixed):
    waits = [each.value("time_to_first_token") for each in runs.values()]
    assert waits == sorted(waits)
for run in (*mixed.values(), three, four, five, lone, burst):
    assert run.time_to_first_token_p99 > run.time_to_first_token
    assert run.time_per_output_token_p99 > run.time_per_output_token

# "At a light load the group of eight is fastest, and at a heavy load the groups of four are."
tails = [
    {at: each[at].value("time_per_output_token_p99") for at in each} for each in groups.values()
]
assert tails[2]["light"] == min(each["light"] for each in tails)
assert tails[1]["heavy"] == min(each["heavy"] for each in tails)

# The cheapest plan of either kind has two pools of H100s; the chapter orders the one pool's B200s.
assert either.best is two_pools
assert {two_pools.service.device.key, two_pools.prefill.service.device.key} == {"Cloud.H100"}
assert ordered == best.replicas
