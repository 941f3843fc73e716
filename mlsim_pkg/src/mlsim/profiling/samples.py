"""Real profiles that come with the package, each with its source and license."""

from __future__ import annotations

import datetime
import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from mlsim.errors import unknown_name
from mlsim.records import DATA

FOLDER = DATA / "profiles"


@dataclass(frozen=True, slots=True)
class SampleProfile:
    """A profile of somebody's run.

    Attributes
    ----------
    name, path, what
        Its name here, its file, and what ran.
    source, license, read
        Key of the bibliography, under which terms it is here, and when it was read.
    """

    name: str
    path: Path
    what: str
    source: str
    license: str
    read: datetime.date


@cache
def sample_profiles() -> dict[str, SampleProfile]:
    """Return all profiles that come with the package, by name.

    >>> sample_profiles()["vllm_a100_graphs"].path.name
    'vllm_a100_graphs.csv'
    """
    with (FOLDER / "samples.toml").open("rb") as file:
        listed = tomllib.load(file)
    return {
        name: SampleProfile(name, FOLDER / entry.pop("file"), **entry)
        for name, entry in listed.items()
    }


def sample_profile(name: str) -> Path:
    """Return the path of a profile that comes with the package, for `read_profile`.

    Raises
    ------
    UnknownNameError
        If there is none of that name.

    >>> from mlsim.profiling import read_profile
    >>> graphs = read_profile(sample_profile("vllm_a100_graphs"))
    >>> [round(kernel.intensity.magnitude, 2) for kernel in graphs.kernels]
    [26.94, 48.29, 93.07]
    """
    if name not in sample_profiles():
        raise unknown_name("sample profile", name, sample_profiles())
    return sample_profiles()[name].path
