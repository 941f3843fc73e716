"""Notebooks that attack the grader: code by name, of `tests/fixtures/attacks.toml`."""

from __future__ import annotations

import tomllib

from kept import FIXTURES

_READ = tomllib.loads((FIXTURES / "attacks.toml").read_text(encoding="utf-8"))
_BYPASS = _READ["setup"]["BYPASS"]
_SETUP = {"BYPASS": _BYPASS, "NATIVE": f"{_BYPASS}{_READ['setup']['NATIVE']}\n"}


def _whole(code: str) -> str:
    """Return an attack with its setup in the place of the setup's name."""
    first, _, rest = code.partition("\n")
    return _SETUP[first] + rest if first in _SETUP else code


GROUPS = {
    group: {name: _whole(code) for name, code in attacks.items()}
    for group, attacks in _READ.items()
    if group != "setup"
}
ATTACKS = {name: code for group in GROUPS.values() for name, code in group.items()}
