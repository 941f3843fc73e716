"""Claims of anatomy.qmd that need networks of their own, or that no sentence stands beside."""

# PyTorch's example network has what its printed summary says, AlexNet what its paper describes.
assert anatomy(Models.MNIST_Net).parameters == 21840
assert (split.parameters, unsplit.parameters) == (60965224, 62378344)

# ResNet-50 in batches of 64 waits for memory in TF32, and computes in plain FP32.
plain = anatomy(Models.ResNet50, batch_size=64, hardware="A100").run
assert in_tf32.memory_bound_share > 0.5 > plain.memory_bound_share

# "The summary has no line for them": that network calls ReLU and pooling as plain functions.
assert not {"activation", "pooling"} & {
    row["type"].split("-")[0] for row in summary(Models.MNIST_Net)
}
