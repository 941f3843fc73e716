"""Claims of training_at_scale.qmd that need loops over its runs, or counts of their own."""

from itertools import pairwise
from math import isclose

# The bubble: seven other stages, without the output layer, over micro-batches times parts.
for (micro_batches, parts), step in piped.items():
    others = (1 - step.output_share) * 7 / (micro_batches * parts)
    assert isclose(step.bubble_time / step.steady_time, others)

# "The model's work is the same, cut smaller": the MFU falls with more GPUs at the same batch.
utilization = [each.model_flops_utilization for each in sizes.values()]
assert all(later < 1.01 * earlier for earlier, later in pairwise(utilization))
assert utilization[-1] < 0.85 * utilization[0]
assert sizes[DEVICES].value("step_time") == best.value("step_time")
assert not any(each.run.parallelism.shard == "zero3" for each in sizes.values())

# Matrices are divided within a node: no layout that the search found has them across nodes.
assert max(each.run.parallelism.tensor for each in sizes.values()) <= cluster.node.devices

# "More than half of the longest is attention."
wide = next(row for row in series["mpt_h100_80gb"] if row.sequence_tokens == 65536).transformer
assert wide.flop_count(65536, all_logits=True) > 2 * 65536 * wide.flop_count(1, all_logits=True)

# "From 2,048 to 65,536 tokens it falls", at each length between them.
by_length = [
    reached_
    for (name, devices, _), reached_ in sorted(h100s.items())
    if (name, devices) == ("MPT_7B", 8)
]
assert (by_length[0], by_length[-1]) == (max(by_length), min(by_length)) == (mpt_short, mpt_long)
