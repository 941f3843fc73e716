"""Run every notebook as Colab would: its versions, the built wheel, nothing beside it.

    python tests/colab/run.py [NOTEBOOK ...]

An environment gets the versions of `requirements.txt`; then a notebook's first cell installs
the wheel beside it, which may change none of them: what Colab has loaded can't be
exchanged in a running notebook. Each notebook is copied alone into an empty folder and
run from top to bottom; a cell that fails fails the run, unless it is meant to. Then the
calls of its exercises are tried: not attempted, and wrong.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

from mlsim_book.render.wheel import build_wheel

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
VENV = ROOT / ".venv" / "colab"
REQUIREMENTS = HERE / "requirements.txt"

RUN = """
import re, sys, nbclient, nbformat
path = sys.argv[1]
notebook = nbformat.read(path, as_version=4)
text = "\\n".join(cell.source for cell in notebook.cells if cell.cell_type == "code")
for name in re.findall(r'^check\\("([\\w-]+)", answer\\)$', text, re.MULTILINE):
    source = f'hint("{name}")\\ncheck("{name}", -7.0)\\nreveal("{name}")'
    notebook.cells.append(nbformat.v4.new_code_cell(source))
nbclient.NotebookClient(notebook, timeout=600, kernel_name="python3").execute()
said = "".join(out.get("text", "") for cell in notebook.cells
               for out in cell.get("outputs", []) if out.output_type == "stream")
assert said.count("Not attempted yet.") == said.count("Answer: "), said
print(f"ran {sum(cell.cell_type == 'code' for cell in notebook.cells)} cells,"
      f" {said.count('Answer: ')} exercises")
"""


def main(names: list[str]) -> int:
    """Run the notebooks that are named, or all; return the exit code."""
    notebooks = [Path(name) for name in names] or sorted((ROOT / "notebooks").rglob("*.ipynb"))
    with tempfile.TemporaryDirectory() as folder:
        python = prepare(notebooks[0], Path(folder))
        failed = [each for each in notebooks if not run(python, each)]
    for each in failed:
        print(f"FAILED {each}")
    return 1 if failed else 0


def prepare(notebook: Path, folder: Path) -> Path:
    """Return the Python of an environment like Colab's, in which a first cell has run."""
    venv.create(VENV, with_pip=True, clear=True)
    python = VENV / "bin" / "python"
    pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, "--requirement", REQUIREMENTS], check=True)
    before = versions(python)
    wheel = build_wheel(ROOT / "mlsim_pkg")
    (folder / wheel.name).write_bytes(wheel.data)
    first, *_ = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    subprocess.run([python, "-P", "-c", "".join(first["source"])], cwd=folder, check=True)
    after = versions(python)
    changed = sorted(name for name in before if after.get(name) != before[name])
    if changed:
        raise SystemExit(f"installing the wheel changes what Colab has loaded: {changed}")
    added = sorted(set(after) - set(before))
    print(f"Python {sys.version.split()[0]}; the wheel adds {', '.join(added)}")
    return python


def versions(python: Path) -> dict[str, str]:
    """Return what is installed, by name."""
    freeze = [python, "-m", "pip", "list", "--format=freeze", "--disable-pip-version-check"]
    listed = subprocess.run(freeze, capture_output=True, text=True, check=True).stdout
    return dict(re.findall(r"^(\S+)==(\S+)$", listed, re.MULTILINE))


def run(python: Path, notebook: Path) -> bool:
    """Run one notebook alone; say whether all went well."""
    with tempfile.TemporaryDirectory() as folder:
        shutil.copy(notebook, folder)
        done = subprocess.run(
            [python, "-I", "-c", RUN, notebook.name],
            cwd=folder, capture_output=True, text=True, check=False,
        )  # fmt: skip
    print(f"{notebook.stem}: {done.stdout.strip() or done.stderr[-2000:]}", flush=True)
    return done.returncode == 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
