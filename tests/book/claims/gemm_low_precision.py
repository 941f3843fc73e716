"""Claims of `tutorials/gemm_low_precision.qmd` that are loops."""

# The printed peak doubles with 2:4 zeros on all four devices.
for name in ("A100", "H100", "B200", "L4"):
    device = Hardware.find(name)
    assert 1.9 < show(device, "sparse.fp16") / device.compute.peak("fp16") < 2.1
