"""How long a host takes to cut the text of a prompt into tokens: `tokenizing_time`.

    python benchmarks/tokenizing.py RANKS

RANKS is a file of tokens and their ranks such as `dashscope/resources/qwen.tiktoken` of the
wheel `dashscope` (151,643 tokens). It needs the packages `tokenizers` and `transformers`, whose
call the engines make.
Prompts are made as the benchmark behind silicon_sample.csv makes them: tokens that follow one
another from a place drawn at random, as text. Each text is new to the tokenizer; the time is
that of the processor, whatever else runs. Beside it the files named after RANKS, if any, in
pieces of 30,000 characters.
"""

from __future__ import annotations

import base64
import os
import random
import statistics
import sys
import time
from pathlib import Path
from typing import Any

os.environ["TOKENIZERS_PARALLELISM"] = "false"
# How text is cut into words, as models of the family do it.
WORDS = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
SIZES, TEXTS, PIECE = (1024, 8192), 15, 30_000


def tokenizer(path: Path) -> Any:
    """Return a tokenizer of ranked tokens: pairs are merged in the order of their ranks."""
    from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers

    lines = (line.split() for line in path.read_bytes().splitlines())
    ranks = {base64.b64decode(token): int(rank) for token, rank in lines}
    letters = _letters()
    vocabulary = {"".join(letters[each] for each in token): rank for token, rank in ranks.items()}
    merges = []
    for token, rank in sorted(ranks.items(), key=lambda each: each[1]):
        parts = _parts(token, ranks, rank)
        if len(parts) == 2:
            left, right = ("".join(letters[each] for each in part) for part in parts)
            merges.append((left, right))
    found = Tokenizer(models.BPE(vocab=vocabulary, merges=merges))
    words = pre_tokenizers.Split(Regex(WORDS), "isolated")
    signs = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    found.pre_tokenizer = pre_tokenizers.Sequence([words, signs])
    found.decoder = decoders.ByteLevel()
    return found


def _letters() -> dict[int, str]:
    """Return a printable letter for each byte."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [each for each in range(256) if each not in plain]
    return {each: chr(each) for each in plain} | {
        each: chr(256 + place) for place, each in enumerate(others)
    }


def _parts(token: bytes, ranks: dict[bytes, int], below: int) -> list[bytes]:
    """Return the pieces of which a token is merged last."""
    parts = [bytes([each]) for each in token]
    while len(parts) > 1:
        pairs = [(ranks.get(parts[i] + parts[i + 1], below), i) for i in range(len(parts) - 1)]
        rank, place = min(pairs)
        if rank >= below:
            break
        parts[place : place + 2] = [parts[place] + parts[place + 1]]
    return parts


def seconds_per_token(found: Any, text: str) -> float:
    """Cut one text, and return the time for each of its tokens."""
    start = time.process_time()
    tokens = found(text)["input_ids"]
    return (time.process_time() - start) / len(tokens)


def main() -> None:
    """Measure both sizes of prompts, and plain text."""
    from transformers import PreTrainedTokenizerFast

    inner = tokenizer(Path(sys.argv[1]))
    found, count = PreTrainedTokenizerFast(tokenizer_object=inner), inner.get_vocab_size()
    draw = random.Random(1)
    for size in SIZES:
        starts = [draw.randrange(count) for _ in range(TEXTS)]
        texts = [inner.decode([(start + i) % count for i in range(size)]) for start in starts]
        report(f"{size} tokens in a row", [seconds_per_token(found, text) for text in texts])
    plain = "\n".join(Path(name).read_text(encoding="utf-8") for name in sys.argv[2:])
    texts = [plain[i : i + PIECE] for i in range(0, len(plain) - PIECE, PIECE)][:TEXTS]
    if texts:
        report("plain text", [seconds_per_token(found, text) for text in texts])


def report(name: str, values: list[float]) -> None:
    """Print the middle of some times, the least and the largest."""
    shown = (1e6 * each for each in (statistics.median(values), min(values), max(values)))
    print("{}: {:.2f} us a token ({:.2f} to {:.2f})".format(name, *shown))


if __name__ == "__main__":
    main()
