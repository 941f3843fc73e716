from __future__ import annotations
from dataclasses import dataclass
@dataclass(frozen=True, slots=True)
class Band:
    words: str
    def around(self, v): return v, v
def band(kind, metric, source): return None
