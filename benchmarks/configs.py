"""Which real configurations load, and whether their counts are the published ones.

    python benchmarks/configs.py [FOLDER]

FOLDER has files that end in `_config.json`; without it, those of the wheel
`aiconfigurator-core` are taken, if it is installed (release 0.12.0 has 89). A count is
compared with two others: that of the transformers library, release 5.23.0, which builds
the model of the same file without memory for its parameters
(`tests/fixtures/config_counts.csv`; it does not count the corrections of routers, which
checkpoints have, so they stand beside it), and the billions in the model's own name. Those
of a name may include pictures, sound and layers that draft tokens, which are not counted here.
"""

from __future__ import annotations

import csv
import re
import sys
import warnings
from collections import Counter
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from tables import lay_out

from mlsim.errors import DataFileError
from mlsim.workloads.huggingface import load_config
from mlsim.workloads.language import Transformer

WHEEL = "aiconfigurator_core"
COUNTS = Path(__file__).parents[1] / "tests" / "fixtures" / "config_counts.csv"
_END, _BESIDE = "_config.json", "hf_quant_config.json"
# "235B-A22B" and "27B", as part of a model's name; "17B-128E" are those of a token.
_NAMED = re.compile(r"(?<![\w.])(\d+(?:\.\d+)?)B(?:-A(\d+(?:\.\d+)?)B)?(?![a-z]|-\d+E)")


@dataclass(frozen=True)
class Checked:
    """A file: the model that it makes, or why it makes none."""

    name: str
    model: Transformer | None
    reason: str = ""

    @property
    def difference(self) -> int | None:
        """Parameters more than the library counts; None where it counts none."""
        known = library_counts().get(self.name)
        return None if self.model is None or known is None else self.model.parameter_count - known

    @property
    def named(self) -> str:
        """The billions of its name, all and active."""
        found = _NAMED.search(self.name.partition("--")[2].replace("_", "-"))
        return found[0] if found else ""


def folder_of_wheel() -> Path | None:
    """Return the folder of configurations of the installed wheel, if there is one."""
    found = find_spec(WHEEL)
    places = list(found.submodule_search_locations or ()) if found else []
    folder = Path(places[0]) / "model_configs" if places else None
    return folder if folder and folder.is_dir() else None


def library_counts() -> dict[str, int]:
    """Return what the transformers library counts, by the name of the file."""
    with COUNTS.open(encoding="utf-8", newline="") as file:
        return {
            row["file"]: int(row["parameters"]) + int(row["router_corrections"])
            for row in csv.DictReader(file)
        }


def check(folder: Path) -> list[Checked]:
    """Load each file of a folder."""
    found = []
    for path in sorted(folder.glob(f"*{_END}")):
        if path.name.endswith(_BESIDE):
            continue
        name = path.name.removesuffix(_END)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            try:
                found.append(Checked(name, load_config(path)))
            except DataFileError as error:
                reason = re.sub(r"^.*?\.json:(\d+: )?", "", str(error))
                found.append(Checked(name, None, reason))
    return found


def _row(each: Checked) -> list[str]:
    model = each.model
    if model is None:
        return [each.name, "refused", "", "", "", each.named, ""]
    off = each.difference
    library = "has none" if off is None else f"{off:+,}" if off else "equal"
    return [
        each.name,
        model.architecture.partition(", from")[0],
        f"{model.parameter_count:,}",
        f"{model.active_parameter_count / 1e9:.2f}",
        library,
        each.named,
        str(model.released or ""),
    ]


def main(arguments: list[str]) -> int:
    """Print the table."""
    folder = Path(arguments[0]) if arguments else folder_of_wheel()
    if folder is None:
        print(f"{WHEEL} is not installed; name a folder of configurations.", file=sys.stderr)
        return 1
    found = check(folder)
    heads = ["file", "type", "parameters", "active, 1e9", "library", "name", "released in"]
    print(lay_out(heads, map(_row, found)))
    loaded = [each for each in found if each.model]
    print(f"\n{len(loaded)} of {len(found)} load.")
    counts = Counter(each.difference for each in loaded)
    print(
        f"{counts[0]} counts equal the library's, {counts[None]} have none to compare, "
        f"{len(loaded) - counts[0] - counts[None]} differ."
    )
    for reason, files in Counter(each.reason for each in found if not each.model).items():
        print(f"Refused, {files}: {reason}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
