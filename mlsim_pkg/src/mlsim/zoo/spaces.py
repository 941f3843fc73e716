"""The zoo: models, devices and places by dotted names, read from their files when asked.

    >>> from mlsim import Hardware, Models
    >>> Models.ResNet50.name
    'ResNet-50 v1.5'
    >>> Hardware.Cloud.A100.name
    'NVIDIA A100 SXM 80 GB'

An index of keys and files is made by scanning each file's `key` lines only, so
looking one device up reads one file. A file may contain many records, each with a key.
A layer's code is imported when the first of its files is read.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache, cached_property
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any
from warnings import warn

from mlsim.errors import (
    LISTED,
    DataFileError,
    InvalidValueError,
    UnknownNameError,
    closest,
    unknown_name,
)
from mlsim.records import DATA, DataFile, load

if TYPE_CHECKING:
    from mlsim.systems import Cluster, System


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


FILE = DATA / "aliases.toml"
GROUPS = ("devices", "systems", "models", "software")


@dataclass(frozen=True, slots=True)
class Alias:
    """What a name stands for, and in what the two differ ("" if in nothing)."""

    key: str
    note: str = ""


@cache
def aliases(path: Path = FILE) -> Mapping[str, Mapping[str, Alias]]:
    """Return the aliases of each group, by their plain names.

    Raises
    ------
    DataFileError
        If a name stands twice, spelled alike or not, or an entry is no alias; says which.

    >>> aliases()["models"]["olmo17b"].key
    'OLMo_7B'
    """
    file = load(path)
    file.only(file.data, GROUPS)
    return {group: _group(file, group, file.data.get(group, {})) for group in GROUPS}


def _group(file: DataFile, group: str, entries: Mapping[str, Any]) -> dict[str, Alias]:
    found: dict[str, Alias] = {}
    spelled: dict[str, str] = {}
    for name, entry in entries.items():
        if plain(name) in found:
            first = spelled[plain(name)]
            words = f"{group} has {name!r} twice, first as {first!r}: keep one of them."
            raise file.error(words, group, f'"{name}"')
        fields = {"key": entry} if isinstance(entry, str) else entry
        texts = isinstance(fields, dict) and all(isinstance(each, str) for each in fields.values())
        if not texts or not {"key"} <= fields.keys() <= {"key", "note"}:
            words = f"{name!r} must be a name, or a table with a key and a note."
            raise file.error(words, group, f'"{name}"')
        found[plain(name)], spelled[plain(name)] = Alias(**fields), name
    return found


def find(group: str, name: str) -> Alias | None:
    """Return what a name stands for, if it is an alias.

    >>> find("devices", "GB10").key, find("devices", "T4")
    ('Workstation.DGXSpark', None)
    """
    return aliases()[group].get(plain(name)) if group else None


def software(name: str) -> Alias:
    """Return the class of software of a name.

    Raises
    ------
    UnknownNameError
        If there is no such class; names those that there are.
    """
    found = aliases()["software"].get(plain(name))
    if found is None:
        raise unknown_name("class of software", name, aliases()["software"])
    return found


# The group of aliases that belongs to a namespace.
_GROUPS = {"Models": "models", "Hardware": "devices", "Systems": "systems"}
# How alike a misspelled family of models must be to one, and a model without one to another.
_KIN, _ALIKE = 0.7, 0.75
_BRANDS = ("rtx", "gtx", "rx")
_MADE_OF = re.compile(r"(?P<count>\d+) ?[x*\u00d7] ?(?P<device>.+)", re.IGNORECASE)
# Bytes in which the key of a file of one record is looked for.
_HEAD = 2048
_KEY = re.compile(rb'^key\s*=\s*"([^"]+)"', re.MULTILINE)


def index(folder: Path) -> dict[str, Path]:
    """Map the keys of the data files in a folder to their paths.

    Raises
    ------
    DataFileError
        If a file has no key, or two have the same.
    """
    found: dict[str, Path] = {}
    for path in sorted(folder.glob("*.toml")):
        matches = _keys(path)
        if not matches:
            raise DataFileError(f'{path}:1: there is no line key = "...".')
        for match in matches:
            key = match[1].decode(errors="replace")
            if key in found:
                line = match.string.count(b"\n", 0, match.start()) + 1
                raise DataFileError(
                    f"{path}:{line}: the key {key!r} is that of {found[key]}, too. "
                    "Give the newer of the two its own."
                )
            found[key] = path
    return found


def twin(path: Path) -> Path | None:
    """Return another file of the same folder that has a key of this one, if there is one."""
    own = {match[1] for match in _keys(path)}
    others = (each for each in sorted(path.parent.glob("*.toml")) if not each.samefile(path))
    return next((each for each in others if own & {match[1] for match in _keys(each)}), None)


def _keys(path: Path) -> list[re.Match[bytes]]:
    """Find the keys of a data file; of one record the key stands in its head.

    In TOML what stands before the first table belongs to the whole file, so a key
    there is the only one, and the rest need not be read.
    """
    with path.open("rb", buffering=0) as file:
        head = file.read(_HEAD)
        only = _KEY.search(head, 0, max(head.find(b"\n["), 0))
        return [only] if only else list(_KEY.finditer(head + file.read()))


class Namespace:
    """Dotted names over data files: attributes are groups or loaded records."""

    def __init__(
        self, title: str, kind: str, folder: Path, load: Callable[[Path], Any], prefix: str = ""
    ) -> None:
        self._title, self._kind, self._folder = title, kind, folder
        self._load, self._prefix = load, prefix
        self._group = _GROUPS.get(title, "")

    def keys(self) -> list[str]:
        """Full dotted keys of all records below this name."""
        return [key for key in _index(self._folder) if key.startswith(self._prefix)]

    def __dir__(self) -> list[str]:
        return sorted({key.removeprefix(self._prefix).partition(".")[0] for key in self.keys()})

    def __iter__(self) -> Iterator[Any]:
        """All records below this name, in order of their keys."""
        return (self.get(key) for key in sorted(self.keys()))

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        full = self._prefix + name
        # What was found once is an attribute from then on.
        if full in _index(self._folder):
            self.__dict__[name] = record = self.get(full)
            return record
        if any(key.startswith(f"{full}.") for key in self.keys()):
            group = Namespace(
                f"{self._title}.{name}", self._kind, self._folder, self._load, f"{full}."
            )
            self.__dict__[name] = group
            return group
        choices = [f"{self._title}.{key.removeprefix(self._prefix)}" for key in self.keys()]
        # Hardware.H100 is Hardware.Cloud.H100.
        meant = next(iter(self._spelled.get(plain(name), ())), full).removeprefix(self._prefix)
        raise unknown_name(
            self._kind,
            f"{self._title}.{name}",
            choices,
            see=self._see(len(choices)),
            like=f"{self._title}.{meant}",
        )

    def get(self, key: str) -> Any:
        """Return the record of a full key such as "Cloud.A100"."""
        record = _record(self._load, _index(self._folder)[key])
        return record[key] if isinstance(record, Mapping) else record

    def find(self, name: str) -> Any:
        """Return a record by its key, the last part of it, or its name.

        Case, spaces, dashes and underscores don't count.

        Raises
        ------
        UnknownNameError
            If there is none; suggests the nearest.
        InvalidValueError
            If several names differ only in dashes; lists them.
        """
        found, differs = self._keys_of(name)
        if len(found) > 1:
            # AWS has a us-east-1, and Google a us-east1.
            found = [key for key in found if _dashed(name) in map(_dashed, _ways(key))] or found
        if len(found) > 1:
            choices = " or ".join(f"{self._title}.{key}" for key in found)
            raise InvalidValueError(f"{name!r} is not one {self._kind}: say {choices}.")
        if not found:
            names = [key.rpartition(".")[2] for key in self.keys()]
            raise unknown_name(
                self._kind, name, names, see=self._see(len(names)), near=self.near(name)
            )
        record = self.get(found[0])
        if differs:
            warn(f"{name!r} is taken as {record.name}: {differs}.", stacklevel=3)
        return record

    def _keys_of(self, name: str) -> tuple[list[str], str]:
        """Return the keys that a name may mean, and in what that differs from what is named."""
        for way in (name, *self._shorter(name)):
            if found := self._spelled.get(plain(way)):
                return found, ""
            if alias := self._alias(way):
                return [alias.key], alias.note
            if named := self._named.get(plain(way)):
                return [named], ""
        return self._written(name), ""

    def has(self, name: str) -> bool:
        """Tell whether a key, an alias, or the last part of a key is spelled so.

        No file of a record is read.
        """
        return plain(name) in self._spelled or self._alias(name) is not None

    def _alias(self, name: str) -> Alias | None:
        return find(self._group, name)

    def knows(self, name: str) -> bool:
        """Tell whether a name is of something here, in whatever way it is written."""
        return bool(self._keys_of(name)[0])

    def _shorter(self, name: str) -> Iterable[str]:
        """Return a name without words that tell nothing, one way after another."""
        return ()

    def _written(self, name: str) -> list[str]:
        """Return the keys that a name may mean by its parts, which stand in any order."""
        return []

    def _see(self, count: int) -> str:
        """Say where all names are, if there are too many to list."""
        return f"`mlsim zoo` lists all {count}." if count > LISTED else ""

    def core(self, name: str) -> str:
        """Return what of a name tells one thing from another."""
        return name

    def near(self, name: str) -> list[str]:
        """Return the three names here that are most like one that is not."""
        return closest(self.core(name), [key.rpartition(".")[2] for key in self.keys()])

    @cached_property
    def _spelled(self) -> dict[str, list[str]]:
        """Keys by what is asked for: a key as a whole, or the last part of it."""
        found: dict[str, list[str]] = {}
        for key in self.keys():
            for way in dict.fromkeys(map(plain, _ways(key))):
                found.setdefault(way, []).append(key)
        return found

    @cached_property
    def _named(self) -> dict[str, str]:
        """Keys by the names of their records; reads all files."""
        found: dict[str, str] = {}
        for key in sorted(self.keys()):
            found.setdefault(plain(self.get(key).name), key)
        return found

    def __repr__(self) -> str:
        return f"<{self._title}: {', '.join(dir(self))}>"


def _ways(key: str) -> tuple[str, str]:
    """Return the ways to write a key: as a whole, or the last part of it."""
    return key, key.rpartition(".")[2]


def _dashed(text: str) -> str:
    return re.sub(r"[\s_-]+", "_", text).lower()


@cache
def _index(folder: Path) -> dict[str, Path]:
    return index(folder)


@cache
def _record(load: Callable[[Path], Any], path: Path) -> Any:
    return load(path)


def _loader(place: str, *needs: Callable[[], Any]) -> Callable[[Path], Any]:
    """Return what reads a file; its code is imported, and what it needs made, for the first one."""
    module, _, name = place.rpartition(".")

    def load(path: Path) -> Any:
        return getattr(import_module(f"mlsim.{module}"), name)(path, *(each() for each in needs))

    return load


class Devices(Namespace):
    """The devices of the zoo, and the machine that runs this, once it was measured."""

    def local(self, kind: str = "cpu") -> Any:
        """Return this machine as `mlsim measure` found it: its processor, or its "gpu".

        Raises
        ------
        NotMeasuredError
            If nobody measured it yet; says how.
        UnknownNameError
            If `kind` is neither "cpu" nor "gpu".
        """
        from mlsim.zoo.local import local

        return local(kind)

    def find(self, name: str) -> Any:
        """Return a device by its key, its name, or as "local" or "local-gpu".

        Raises
        ------
        NotMeasuredError
            If this machine is asked for, and nobody measured it yet.
        UnknownNameError, InvalidValueError
            As of any namespace.
        """
        kinds = {"local": "cpu", "localcpu": "cpu", "localgpu": "gpu"}
        wanted = plain(name)
        return self.local(kinds[wanted]) if wanted in kinds else super().find(name)

    @cached_property
    def _boards(self) -> dict[str, Board]:
        """What the name of each device says, else its memory in GB; reads all files."""
        found = {}
        for key in sorted(self.keys()):
            device = self.get(key)
            said = board(device.name)
            memory = said.memory or round(device.memory.printed_figure.value)
            found[key] = replace(said, memory=memory)
        return found

    def _shorter(self, name: str) -> Iterable[str]:
        return (bare(name),)

    def _written(self, name: str) -> list[str]:
        """Return the devices of a driver's or a shop's name; where several, the usual form.

        What a comma adds must be of that device, or else it is another one.
        """
        _, *more = re.sub(r"\(.*?\)", "", name).split(",")
        added = [plain(each) for each in more if board(each).chip]
        found = self._boarded(name)
        return [key for key in found if all(each in plain(self.get(key).name) for each in added)]

    def _boarded(self, name: str) -> list[str]:
        """Return the devices of a name without what stands after a comma."""
        said = board(name)
        # People leave out what goes without saying: a 4090.
        ways = [said] + [replace(said, chip=f"{brand}{said.chip}") for brand in _BRANDS]
        for way in ways:
            found = [key for key, each in self._boards.items() if way.means(each)]
            usual = [key for key in found if plain(key.rpartition(".")[2]) == way.chip]
            if found:
                return usual or found
        return []

    def core(self, name: str) -> str:
        """Return the chip that a name says."""
        return board(name.rpartition(".")[2]).chip or name


class _Models(Namespace):
    """The models of the zoo, also by the names of their checkpoints on a hub."""

    def find(self, name: str) -> Any:
        """Return a model by its key, its name, or the id of a checkpoint.

        Raises
        ------
        UnknownNameError
            If there is none, or the checkpoint is a quantized one; says what to ask for.
        """
        of = unquantized(name)
        if of and not self.has(name) and self.knows(of):
            key = super().find(of).key
            raise UnknownNameError(
                f"{name!r} is a quantized checkpoint of {key}: ask for {key} and a precision such "
                "as fp8, int8 or w4a16, or give its config.json, which says its formats."
            )
        return super().find(name)

    def _shorter(self, name: str) -> Iterable[str]:
        return shorter(name)

    def _see(self, count: int) -> str:
        return f"`mlsim zoo` lists all {count}; of another, give its config.json."

    def core(self, name: str) -> str:
        """Return the name without its owner and how it was trained further."""
        return [name, *shorter(name)][-1]

    def near(self, name: str) -> list[str]:
        """Return the three models most like one that is not here: of its family, or none.

        Those of the same generation come first: by its letters Llama 3.2 1B is a Llama 2 13B.
        """
        core = self.core(name)
        family, generation = family_of(core)
        kin = closest(family, {family_of(key)[0] for key in self.keys()}, 1, _KIN)
        if not kin:
            return closest(core, self.keys(), 3, _ALIKE)
        members = [key for key in self.keys() if family_of(key)[0] == kin[0]]
        found = closest(core, members, len(members), 0.0)
        return sorted(found, key=lambda key: family_of(key)[1] != generation)[:3]


class _Systems(Namespace):
    """The systems of the zoo, also by what they are made of: 8 x H100."""

    def _written(self, name: str) -> list[str]:
        said = _MADE_OF.fullmatch(name.strip())
        if not said or not Hardware.knows(said["device"]):
            return []
        device = Hardware.find(said["device"])
        return [
            each.key
            for each in self
            if each.device is device and each.devices == int(said["count"])
        ]


Models = _Models("Models", "model", DATA / "workloads", _loader("workloads.model_files.load_model"))
Hardware = Devices("Hardware", "device", DATA / "hardware", _loader("hardware.device.load_device"))
load_system: Callable[[Path], System] = _loader("systems.system.load_system", lambda: Hardware.find)
Systems = _Systems("Systems", "system", DATA / "systems", load_system)
load_cluster: Callable[[Path], Cluster] = _loader(
    "systems.system.load_cluster", lambda: Systems.find
)
Clusters = Namespace("Clusters", "cluster", DATA / "clusters", load_cluster)
_PLACES = DATA / "infrastructure"


def _load_grids(path: Path) -> Any:
    from mlsim.infrastructure.places import load_grids, other_figures

    return load_grids(path, *other_figures(_PLACES, tuple(_index(_PLACES / "grids"))))


Grids = Namespace("Grids", "grid", _PLACES / "grids", _load_grids)
DataCentres = Namespace(
    "DataCentres",
    "data center",
    _PLACES / "datacentres",
    _loader("infrastructure.places.load_data_centres"),
)
CloudOperators = Namespace(
    "CloudOperators",
    "operator",
    _PLACES / "operators",
    _loader("infrastructure.accounts.load_operator"),
)
Embodied = Namespace(
    "Embodied",
    "embodied carbon",
    _PLACES / "embodied",
    _loader("infrastructure.accounts.load_embodied", Hardware.keys),
)
Regions = Namespace(
    "Regions",
    "region",
    _PLACES / "regions",
    _loader("infrastructure.places.load_regions", lambda: Grids.find),
)

SPACES = (Models, Hardware, Systems, Clusters, Grids, Regions, DataCentres)
