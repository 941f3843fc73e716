"""What readers ask of the search: the chapter that explains it comes first or second."""

import gzip
import json
import subprocess
from pathlib import Path

import pytest
from kept import script

from mlsim_book.render.assets import find_node

# What is typed, and the chapters that explain it. The twelve of the review stand first.
ASKED = {
    "kv cache": ("llm_serving",),
    "roofline": ("where_time_goes", "hello_world"),
    "quantization": ("gemm_low_precision",),
    "bandwith": ("where_time_goes", "hello_world", "gpu", "anatomy"),
    "OOM": ("llm_serving", "training_at_scale"),
    "tensor parallel": ("training_at_scale",),
    "batch size": ("where_time_goes", "hello_world"),
    "prefill": ("llm_serving",),
    "TTFT": ("llm_serving",),
    "MFU": ("training_at_scale",),
    "how many GPUs": ("capacity",),
    "carbon": ("sustainability",),
    "out of memory": ("llm_serving", "training_at_scale"),
    "ring": ("training_at_scale",),
    "LoRA": ("fine_tuning",),
    "goodput": ("training_at_scale", "capacity"),
    "ridge point": ("where_time_goes", "hello_world"),
    "arithmetic intensty": ("where_time_goes", "hello_world", "anatomy"),
    "kernel launch": ("where_time_goes",),
    "CUDA graph": ("where_time_goes",),
    "PUE": ("sustainability",),
    "zero stage 3": ("training_at_scale",),
    "how long does it take to train a model on many GPUs": ("training_at_scale",),
}


@pytest.fixture(scope="module")
def answers(built_book, tmp_path_factory):
    """What the page's own script answers, in Node: by query."""
    asking = tmp_path_factory.mktemp("search") / "ask.js"
    asking.write_text(script("ask_search.js"), encoding="utf-8")
    queries = [*ASKED, "bandwidtttth", "qwertyuiop"]
    folder = str(built_book / "site_libs" / "search")
    command = [find_node(), str(asking), folder, json.dumps(queries)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return dict(zip(queries, json.loads(done.stdout), strict=True))


def test_the_chapter_that_explains_it_is_first_or_second(answers):
    missed = {}
    for query, chapters in ASKED.items():
        shown = [each["href"] for each in answers[query]["results"]]
        wanted = tuple(f"tutorials/{each}.html" for each in chapters)
        if not any(each.startswith(wanted) for each in shown[:2]):
            missed[query] = shown[:4]
        pages = [each.partition("#")[0] for each in shown]
        assert len(set(pages)) == len(pages), query
    assert not missed


def test_no_excerpt_has_a_hole(answers):
    """What stands before a sign of punctuation was not left out."""
    for query in ASKED:
        for each in answers[query]["results"]:
            text = "".join(piece for piece, _ in each["excerpt"])
            assert not any(hole in text for hole in (" , ", " . ", "( )", "()  ")), (query, text)


def test_who_mistypes_is_told_what_was_searched_or_what_is_near(answers):
    assert answers["bandwith"]["meant"] == ["bandwidth"]
    assert (answers["bandwidtttth"]["count"], answers["bandwidtttth"]["near"]) == (0, ["bandwidth"])
    assert (answers["qwertyuiop"]["count"], answers["qwertyuiop"]["near"]) == (0, [])


def test_a_query_takes_little(answers, built_book):
    """With the index's head; a first one takes most, so each is weighed as if it were the first."""
    head = (built_book / "site_libs" / "search" / "index.js").read_bytes()
    for query in ("roofline", "bandwith"):
        files = [Path(each).read_bytes() for each in answers[query]["files"]]
        assert sum(len(gzip.compress(each)) for each in [head, *files]) < 45_000, query
