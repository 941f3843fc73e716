"""Claims of measuring.qmd that need sums over its files, or that no sentence stands beside."""

from math import isclose

# "The counts agree exactly": each part of a pass, as traced and as counted.
for seen, guessed in parts.values():
    predicted = sum(row["operations"] for row in guessed)
    assert isclose(sum(row.flop_count for row in seen) / 3, predicted)

# AlexNet's "conv1 and the linear layers agree": the linear ones within a percent.
assert abs(groups["fc6 to fc8"][1] / linear - 1) < 0.01

# "The slowest shape" is a small one, the fastest a 3 x 3, and pooling is furthest off.
assert "3, 3]" in max(convs, key=lambda row: row.rate).facts["shape"]
assert taken["pooling"] > 10 * hoped["pooling"]

# "All lie right of the ridge, so only the flat part of the roof is drawn."
least = min(row.flop_count / row.calls / computed_bytes(row) for row in convs)
assert least > guess.device.ridge_point("fp32").si
