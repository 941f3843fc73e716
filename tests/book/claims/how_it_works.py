"""What the page of the package's insides says of its code: true of the names of its page."""

# The other wall: the builder of the book and the solver know nothing of each other.
across = [path for path in BUILDER.rglob("*.py") if any(imports(path, "mlsim"))]
across += [path for path in FILES if any(imports(path, "mlsim_book"))]
assert not across, across
assert ("solvers", "infrastructure") in arrows
assert len(CONTRACTS) == 7

# The operator that is followed is memory-bound.
assert steps["memory_time"]["value"] > steps["compute_time"]["value"]

# One matrix of training: forward itself, then two kernels of the backward pass.
assert [bool(each.forward_repeats) for each in three] == [True, False, False]

# Where the page ends, a value has arrived: its text, and how it came to be.
assert str(shown_time) == profile.latency.show(".2f", "ms").text
assert shown_time.origin.how.startswith("**latency = ")

# The figure's alternative text names every arrow and every band, as drawn.
said = Path("how_it_works.qmd").read_text("utf-8")
named = [f"{label.get(a, a)} to {label.get(b, b)}" for a, b in ordered]
drawn = ", ".join(re.sub(r"\b\d ", "", arrow) for arrow in named)
assert f"Arrows, all downward: {drawn}." in said
within = {name: f" ({', '.join(inner)})" for name, inner in rooms.items()}
bands = ", ".join(label.get(name, name) + within.get(name, "") for name in BANDS)
assert f"Seven bands from top to bottom: {bands}." in said
