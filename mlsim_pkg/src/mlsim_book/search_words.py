"""The words of a text as search sees them: folded, and cut where its language sets no spaces.

`theme/search-index.js` does the same to what a reader types. Case, accents and other
ways to write a letter make no difference. Signs that are part of a letter (the vowels of
Devanagari) stay. Chinese, Japanese, Thai and their like are cut into pairs of characters.
"""

from __future__ import annotations

import re
import unicodedata

# Accents and points that one may leave out: Latin, Greek, Cyrillic; Hebrew; Arabic.
_ACCENTS = re.compile(
    "[\u0300-\u036f\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0640\u064b-\u065f\u0670]"
)
# Scripts without spaces between words: Thai and Lao, Burmese, Khmer, Japanese, Chinese.
_SPACELESS = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff"
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
)
_RUN = re.compile(f"([{_SPACELESS}]+)|[^{_SPACELESS}]+")


def fold(text: str) -> str:
    """Return a text without capitals and accents.

    >>> fold("Séance ΟΔΟΣ"), fold("ﬁt")
    ('seance οδοσ', 'fit')
    """
    if text.isascii():
        return text.lower()
    plain = _ACCENTS.sub("", unicodedata.normalize("NFKD", text)).lower().replace("ς", "σ")
    return unicodedata.normalize("NFC", plain)


def words(text: str) -> list[str]:
    """Return the words of a text in order; the last character of a run without spaces, too.

    >>> words("Peak_flops: 312 TFLOP/s")
    ['peak', 'flops', '312', 'tflop', 's']
    >>> words("GPU上的模型")
    ['gpu', '上的', '的模', '模型', '型']
    """
    folded = fold(text)
    table = {ord(sign): " " for sign in set(folded) if unicodedata.category(sign)[0] not in "LMN"}
    spaced = folded.translate(table)
    if spaced.isascii():
        return spaced.split()
    return [
        word
        for chunk in spaced.split()
        for run in _RUN.finditer(chunk)
        for word in (_pairs(run.group()) if run[1] else (run.group(),))
    ]


def _pairs(run: str) -> list[str]:
    return [run[at : at + 2] for at in range(len(run))]
