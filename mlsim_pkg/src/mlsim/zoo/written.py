"""Names as people write them: a driver's, a shop's, a cloud's, a hub's of models.

>>> board("NVIDIA A100-SXM4-80GB")
Board(chip='a100', form='sxm', memory=80)
>>> list(shorter("Qwen/Qwen2.5-7B-Instruct"))
['Qwen2.5-7B-Instruct', 'Qwen2.5-7B']
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass


def plain(text: str) -> str:
    """Return a name as it is compared: case, spaces, dots, dashes and underscores don't count."""
    return re.sub(r"[\s._-]", "", text.lower())


# Words of a device's name that tell none from another: makers, brands, kinds of memory.
_SAID_BY_ALL = frozenset(
    (
        *("nvidia", "amd", "intel", "google", "apple", "aws", "amazon", "qualcomm"),
        *("geforce", "tesla", "instinct", "radeon", "gpu", "gpus", "graphics", "accelerator"),
        *("tensor", "core", "card", "r", "tm", "generation", "oam", "one", "the"),
        *("hbm", "hbm2", "hbm2e", "hbm3", "hbm3e", "gddr6", "gddr6x", "gddr7"),
    )
)
_MEMORY = re.compile(r"(?<![a-z0-9.])(\d+) ?gi?b?(?![a-z0-9])")
_FORM = re.compile(r"(?<![a-z])(?:(sxm)\d?|(pcie|pci-e|pci express)|(nvl))(?![a-z0-9])")


@dataclass(frozen=True, slots=True)
class Board:
    """What a device's name says: its chip, its form, and its GB of memory; "" and 0 if not."""

    chip: str
    form: str = ""
    memory: int = 0

    def means(self, other: Board) -> bool:
        """Tell whether all that this name says is true of another board."""
        return (
            self.chip == other.chip
            and self.form in ("", other.form)
            and self.memory in (0, other.memory)
        )


def board(name: str) -> Board:
    """Read the name of a device.

    What stands after a comma or in parentheses only explains.

    >>> board("NVIDIA GeForce RTX 4090"), board("Tesla T4").chip
    (Board(chip='rtx4090', form='', memory=0), 't4')
    >>> board("H100 PCI-E 80G")
    Board(chip='h100', form='pcie', memory=80)
    """
    text = re.sub(r"\((?:r|tm)\)", " ", name.lower().replace("_", " "))
    text = re.split(r"[(,]", text)[0]
    memory, form = _MEMORY.search(text), _FORM.search(text)
    rest = _FORM.sub(" ", _MEMORY.sub(" ", text))
    words = [each for each in re.split(r"[\s-]+", rest) if each and each not in _SAID_BY_ALL]
    kind = next((each for each in form.groups() if each), "") if form else ""
    return Board(
        chip="".join(words),
        form="pcie" if kind.startswith("pci") else kind,
        memory=int(memory[1]) if memory else 0,
    )


def bare(name: str) -> str:
    """Return a device's name without the words that all of its kind have.

    >>> bare("NVIDIA GB10")
    'GB10'
    """
    return " ".join(each for each in name.split() if each.lower() not in _SAID_BY_ALL)


# How a checkpoint was trained further, which changes no count.
_TRAINED = re.compile(
    r"(?:[-_ ](?:instruct|chat|hf|it|base|pt|preview|uncased|cased|v0\.1|tokenizer))$",
    re.IGNORECASE,
)
# A checkpoint that is kept in other formats than the model's own.
_QUANTIZED = re.compile(
    r"[-_ .](?:fp8|fp4|nvfp4|mxfp4|int[48]|awq|gptq|gguf|bnb|[48]bit|w\d+a\d+|quantized)"
    r"(?:[-_ .].*)?$",
    re.IGNORECASE,
)
_OWNER = re.compile(r"^[\w-][\w.-]*/(?=[^/]+$)")
_FAMILY = re.compile(r"([a-z]*)(?:[-_ ]?v?(\d+)(?![\da-z]))?", re.IGNORECASE)
_MAKER = re.compile(r"^(?:meta|nvidia)[-_ ](?=llama|nemotron)", re.IGNORECASE)


def is_hub_id(name: str) -> bool:
    """Tell whether a name is written as a hub of models writes it: an owner, a slash, a model.

    >>> is_hub_id("Qwen/Qwen2.5-7B-Instruct"), is_hub_id("./folder/model")
    (True, False)
    """
    return bool(_OWNER.match(name))


def shorter(name: str) -> Iterator[str]:
    """Yield the name of a checkpoint without its owner, then without how it was trained further.

    >>> list(shorter("meta-llama/Llama-2-7b-chat-hf"))
    ['Llama-2-7b-chat-hf', 'Llama-2-7b-chat', 'Llama-2-7b']
    """
    for before in (_OWNER, _MAKER):
        if (fewer := before.sub("", name)) != name:
            yield (name := fewer)
    while (fewer := _TRAINED.sub("", name)) != name:
        yield (name := fewer)


def family_of(name: str) -> tuple[str, str]:
    """Return the family of a model's name, and its generation; "" where it says none.

    >>> family_of("Llama-3.2-1B"), family_of("GPT_OSS_120B"), family_of("BERT_Base")
    (('llama', '3'), ('gpt', ''), ('bert', ''))
    """
    family, generation = _FAMILY.findall(name)[0]
    return family.lower(), generation


def unquantized(name: str) -> str:
    """Return the name of the checkpoint that a quantized one was made of; "" of another one.

    >>> unquantized("Qwen2.5-7B-Instruct-AWQ"), unquantized("Qwen2.5-7B")
    ('Qwen2.5-7B-Instruct', '')
    """
    found = _QUANTIZED.sub("", name)
    return "" if found == name else found


# p5.48xlarge, a3-highgpu-8g, Standard_ND96isr_H100_v5.
_INSTANCE = re.compile(
    r"[a-z]\w*(?:-\w+)?\.(?:\d*x?large|metal)|[a-z]\d+\w*-\w+-\d+g?|(?:standard_)?n[cdv]\d+\w*_v\d+",
    re.IGNORECASE,
)


def is_instance(name: str) -> bool:
    """Tell whether a name is that of a machine which a cloud rents.

    >>> is_instance("p5.48xlarge"), is_instance("a3-highgpu-8g"), is_instance("H100-80GB")
    (True, True, False)
    """
    return bool(_INSTANCE.fullmatch(name))
