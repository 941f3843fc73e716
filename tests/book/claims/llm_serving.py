# "No row beats the bound".
for row in rows:
    fast = row.prediction("bound") / row.published
    assert (fast if row.metric == "time_to_first_token" else 1 / fast) < 1, row.words

# "It is nearly always too fast; for some rows of the two gpt-oss models it is too slow."
assert {row.model.rpartition("_")[0] for row in rows if reached(row) > 1} == {"GPT_OSS"}

# The limits of @eq-saturation leave activations aside, which are a few per cent.
for tokens in limit:
    short = ask | {"prompt_tokens": tokens, "output_tokens": 2}
    crowd = Engine.serve(**short, batch_size=10**7, check_memory=False).decode_at(tokens)
    assert 0.8 < crowd.network_intensity / work / limit[tokens] < 1

# "199 users fit, and the memory runs out".
assert full.feasible
assert not Engine.serve(**ask, batch_size=full.batch_size + 1).feasible

# "What that hides is large".
by_roofline = serving.time_per_output_token / divided["alone"].time_per_output_token
assert one_user.time_per_output_token / on_eight.time_per_output_token < by_roofline / 2

# What is said of @tbl-copies: which layout wins while decoding, and with prefill.
decoding, in_all = (
    [max(each, key=lambda name: getattr(each[name], result)) for each in spread.values()]
    for result in ("decode_throughput", "output_throughput")
)
gains = [
    each["TP4·DP2"].decode_throughput / each["DP8"].decode_throughput for each in spread.values()
]
assert decoding[0] == decoding[2] == "TP4·DP2"
assert decoding[4] == "DP8"
assert 0.85 < gains[1] < 0.95
assert 0.97 < gains[3] < 1.03
assert in_all == ["TP4·DP2", "DP8", "TP4·DP2", "DP8", "DP8"]

# "The rest is not proportional to the bytes": about the same with 16, 8 and 4 bits.
rests = [rest(row) for row in (alone, eight_bits, four_bits)]
assert max(rests) < 1.2 * min(rests)

# "On an L40S it falls."
assert reached(first["Cloud.L40S", 128]) > reached(first["Cloud.L40S", 2048])
