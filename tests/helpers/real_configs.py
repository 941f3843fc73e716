"""Published configurations of models whose layers are of several kinds, each with its count."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

FILE = Path(__file__).parents[1] / "fixtures" / "real_configs.json"
REAL: dict[str, tuple[dict[str, Any], int]] = {
    name: (told["config"], told["parameters"])
    for name, told in json.loads(FILE.read_text(encoding="utf-8")).items()
    if name != "about"
}
