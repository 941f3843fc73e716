"""What a row's own figures change, and memory of which parts are written over."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")
from small_modules import WIDE, kinds, read  # noqa: E402
from torch import nn  # noqa: E402

from mlsim.workloads.graph.fuse import fused  # noqa: E402
from mlsim.workloads.pytorch import read_module  # noqa: E402

ROWS = 5
BY_ROW = ("elementwise", "by row")


def normed(rows: torch.Tensor) -> torch.Tensor:
    return rows * torch.rsqrt((rows**2).mean(dim=-1, keepdim=True) + 1e-6)


def standard(rows: torch.Tensor) -> torch.Tensor:
    mean, spread = rows.mean(dim=-1, keepdim=True), rows.std(dim=-1, keepdim=True)
    return (rows - mean) / (spread + 1e-6)


def cut(rows: torch.Tensor) -> torch.Tensor:
    """Set to zero what lies below a bound that each row has."""
    bound = rows.mean(dim=-1, keepdim=True) + 1.5 * rows.std(dim=-1, keepdim=True)
    return torch.nn.functional.relu(rows - bound)


@pytest.mark.parametrize("change", [normed, standard, cut])
def test_a_row_is_changed_by_its_figures_in_one_layer(change: Any) -> None:
    graph = read(change)
    assert kinds(graph)[:2] == [("linear", ""), BY_ROW]
    last = fused(graph)[-1]
    assert last.anchor.function == "by row"
    # The rows are read once and written once.
    operator = last.operator
    assert operator.activations_read == operator.activations_written == ROWS * WIDE


def test_a_figure_that_others_use_is_a_layer_of_its_own() -> None:
    """Two further matrices are made as long as the first: its length is found once."""

    def forward(first: torch.Tensor, *others: nn.Module) -> torch.Tensor:
        length = (first**2).mean(dim=-1, keepdim=True) ** 0.5
        made = [other(first) for other in others]
        return torch.stack([each * length / (each**2).mean(-1, True).sqrt() for each in made])

    graph = read(forward, *(nn.Linear(WIDE, WIDE, bias=False) for _ in range(2)))
    found = [node for node in graph.layers if node.function == "by row"]
    assert [node.shape for node in found] == [(ROWS, 1), (ROWS, WIDE), (ROWS, WIDE)]
    assert [graph.elements_read(node) for node in found] == [40, 45, 45]


def test_figures_of_columns_and_of_all_stay_what_they_are() -> None:
    for forward in (
        lambda rows: rows - rows.mean(dim=-2, keepdim=True),
        lambda rows: rows - rows.mean(dim=(-1, -2), keepdim=True),
    ):
        assert BY_ROW not in kinds(read(forward))


def test_a_sum_with_the_rows_that_two_read_is_no_part_of_it() -> None:
    """What lies between the rows and the figure's use is read by somebody else too."""

    def forward(rows: torch.Tensor) -> torch.Tensor:
        scaled = rows * 2
        centred = scaled - rows.mean(dim=-1, keepdim=True)
        return torch.cat((scaled, centred), dim=-1)

    graph = read(forward)
    scaled = next(node for node in graph.layers if node.function == "scale")
    assert len(graph.consumers[scaled.name]) == 2


class Streams(nn.Module):
    """Several vectors side by side, of which all but the first are added to in their place."""

    def __init__(self, copies: int = 3) -> None:
        super().__init__()
        self.matrix = nn.Linear(WIDE, WIDE, bias=False)
        self.copies = copies

    def forward(self, given: torch.Tensor) -> torch.Tensor:
        made = self.matrix(given)
        streams = torch.stack([made] * self.copies) * 2
        streams[1:] += made
        return streams[0] + streams.sum(dim=0)


def test_memory_that_was_added_to_in_part_is_read_where_it_lies() -> None:
    graph = read_module(Streams(), shape=(ROWS, WIDE))
    assert "copy" not in [function for _, function in kinds(graph)]
    scaled, added, total, last = graph.layers[-4:]
    assert (added.kind, added.shape) == ("add", (2, ROWS, WIDE))
    # The sum reads the first stream as it was, and the others as they are now.
    assert set(graph.sources(total)) == {scaled, added}
    assert graph.taken((total,)) == {scaled.name: 40, added.name: 80}
    # And a part that was left alone is the layer that made it.
    assert set(graph.sources(last)) == {scaled, total}


def test_memory_that_was_written_over_as_a_whole_holds_the_last() -> None:
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.matrix = nn.Linear(WIDE, WIDE, bias=False)

        def forward(self, given: torch.Tensor) -> torch.Tensor:
            made = self.matrix(given)
            made += given
            return made.tanh()

    graph = read_module(Net(), shape=(ROWS, WIDE))
    assert graph.sources(graph.layers[-1]) == (graph.layers[-2],)
    assert graph.layers[-2].kind == "add"


def test_repeated_numbers_are_read_where_they_lie_but_by_products() -> None:
    each = read(lambda rows: rows.repeat(1, 3, 1) * 2)
    assert kinds(each) == [("linear", ""), ("elementwise", "scale")]
    assert each.elements_read(each.layers[-1]) == ROWS * WIDE
    product = read(lambda rows: rows.repeat(1, 1, 3) @ rows.repeat(1, 1, 3).transpose(-1, -2))
    assert ("other", "repeat") in kinds(product)


def test_which_words_a_table_knows_is_found_as_they_are_looked_up() -> None:
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.table = nn.Embedding(10, WIDE)

        def forward(self, words: torch.Tensor) -> torch.Tensor:
            known = torch.logical_and(words >= 0, words < 10)
            return self.table(torch.where(known, words, 0))

    graph = read_module(Net(), tokens=ROWS)
    assert [node.kind for node in graph.layers] == ["embedding"]
    assert graph.sources(graph.layers[0])[0].kind == "input"
