"""What the page of models says beyond its numbers: true of the names of its page."""

# The hybrid and its peer are about as large, and all layers of the peer have attention.
assert peer.full_layers == peer.layers
assert abs(peer.parameters / nano.parameters - 1) < 0.05

# Counts that agree with what was published, and those made in another way.
assert all(off(each) < 1 for each in rounded)
indexer = newer.attention.indexer.operators(newer.hidden, newer.attention.query_rank)
indexers = newer.layers * sum(each.parameters for each in indexer)
assert newer.parameter_count - indexers == older.parameter_count
made_otherwise = ["Gemma3n_E2B", "Gemma3n_E4B", "GLM_4_5", "GLM_4_7", "GPT_J_6B"]
assert [each.key for each in left] == made_otherwise
assert glm.parameter_count == glm_later.parameter_count
assert round(counted_glm.si / 1e9) == published[glm.key].value

# Tokens for each parameter since Chinchilla.
assert list(few_dense.name) == ["Falcon 180B"]
assert "Kimi_K2" in few_experts.index
met = later[later.active_parameters.notna()].drop(few_dense.index)
assert (met.tokens > 20 * met.active_parameters).all()
assert chinchilla.form == "dense"
assert gpt2.figures["published_parameters"].value == 124439808

# Networks for images.
uncounted = {each.key for each in networks if each not in counted}
assert uncounted == {"AlexNet_Unsplit", "LeNet5_Variant"}
assert all(rules.counted_as_published(each) == published[each.key].si for each in counted)
otherwise = [each for each in counted if rules.counted_as_published(each) != each.parameter_count]
assert otherwise == [lenet]

# Other networks.
inexact = [each for each in published_others if each not in exact_others]
assert all(off(each) < 1 for each in inexact)
assert all(published[each.key].unit != "parameter" for each in inexact)
assert [each.key for each in others if each not in published_others] == ["DLRM"]
