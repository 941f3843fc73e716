"""Claims of where_time_goes.qmd that need other answers than the page's."""

from mlsim_course import bank
from mlsim_exercises.evaluation import variants

# "An exercise asks which change pays most": the ten lines and the calibrated estimate agree on it.
exercise = bank.exercises["compile-or-buy"]
assert "names the same change first" in exercise.solution
for given_numbers in variants(exercise):
    names = {}
    assigned = [f"{name} = {value!r}" for name, value in given_numbers.items()]
    exec("\n".join([*assigned, exercise.setup]), names)
    assert max(names["gain"], key=names["gain"].get) == max(
        names["estimated"], key=lambda name: float(names["estimated"][name])
    )

# The decision: neither rate gains a tenth in a model with launches, in software of any class.
for name in ("engine", "kernels", "eager", "graph"):
    asked = {"estimate": "calibrated", "software": name}
    usual = Engine.solve(model, gpu, **asked).latency
    wider = Engine.solve(model, gpu, memory_bandwidth=2 * bandwidth, **asked).latency
    assert Engine.solve(model, gpu, **asked).bottleneck == "Overhead Bound"
    assert usual / wider < 1.1

# "Both waited for their hosts": the V100 gained nothing by one image. "Fewer launches gain more than either".
assert old[v100][1].published <= old[t4][1].published
assert max(own[:2]) < 1.1 < 1.5 < own[2]

# "Count three for each convolution": one by one there are a few more, with the additions.
relus = sum(not name.endswith("down") for name in convolutions)
adds = sum(name.endswith(".c") for name in convolutions)
assert (len(convolutions), relus, adds, parts) == (53, 49, 16, 162)
assert 2 * len(convolutions) + relus + adds + 3 == 174

# "Tiles are arithmetic on too few SMs": kernels that wait for arithmetic take far more than the printed 6 %.
work, moved = best.value("compute_time"), best.value("memory_time")
led = sum(float(each) for each, other in zip(work, moved, strict=True) if each > other)
assert led > 2 * best.causes["arithmetic"] * best.latency.si
