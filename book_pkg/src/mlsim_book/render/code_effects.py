"""What a piece of Python changes beside the names that it binds: objects, settings, what is shown.

The text says nothing of types, so a question of doubt is answered "yes, it may": a call whose
result nobody takes changes something, and an object that was made from another may be part of it.
"""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Iterable, Mapping, Set as AbstractSet
from dataclasses import dataclass, field

from mlsim_book.render.code_names import (
    FUNCTIONS,
    MUTATORS,
    OPAQUE,
    bindings,
    bound_by,
    called,
    definitions,
    is_assertion,
    names_of,
    parameters,
    reach,
    sources,
    walk,
)

RANDOM = "<the random numbers>"  # what modules such as `random` keep; no name of Python's
_BUILTINS = frozenset(dir(builtins))
_PRINTS = frozenset({"print", "pprint", "display"})
_ACTS = OPAQUE | _PRINTS | {"setattr", "delattr", "next", "open", "input", "breakpoint"}
# What one looks at changes: an iterator, a file, a source of random numbers.
_STATEFUL = frozenset(
    {"iter", "open", "map", "filter", "zip", "enumerate", "reversed", "StringIO", "BytesIO"}
)
_SEEDED = frozenset({"Random", "RandomState", "default_rng"})
_DRAWING = re.compile(r"plot|draw|chart|histogram|figure|render|^display$|^p?print$", re.IGNORECASE)
# A method that may change its object, although one takes what it returns: `log = net.fit(data)`.
_CHANGING = re.compile(
    r"(partial_)?fit|(add|set|update|insert|remove|delete|register|connect|write|execute|push)(_|$)"
    r"|step$|run$|reset$|commit$|backward$|seek$|advance$|feed$"
)
_HARMLESS = frozenset(  # decorators that register nothing
    {
        "dataclass", "property", "staticmethod", "classmethod", "cache", "lru_cache", "wraps",
        "cached_property", "contextmanager", "total_ordering", "jit", "njit", "vectorize",
    }
)  # fmt: skip
_DRAWERS = re.compile(r"matplotlib|pylab|seaborn|plotly|altair|bokeh|plotnine")


@dataclass
class Effects:
    """What code changes beside the names that it binds."""

    mutates: set[str] = field(default_factory=set)
    world: bool = False  # something that no name of the page holds: settings, files
    prints: bool = False  # it may print or draw


@dataclass(frozen=True)
class Known:
    """What is known of a page's names: which are imported, and what its functions change."""

    imported: Mapping[str, str]  # the module of each
    bound: frozenset[str]
    drawing: frozenset[str] = frozenset()  # figures, axes, and what they gave
    stateful: frozenset[str] = frozenset()  # what changes as one uses it; those, too
    functions: Mapping[str, Effects] = field(default_factory=dict)


def effects_of(tree: ast.AST, known: Known, *, local: AbstractSet[str] = frozenset()) -> Effects:
    """Return what code changes if it runs; `local` are names of the function that it is in."""
    found = Effects()
    if isinstance(tree, (*FUNCTIONS, ast.ClassDef)):  # its body runs when it is called
        outside = [*tree.decorator_list, *getattr(tree, "bases", [])]
        outside += [tree.args] if not isinstance(tree, ast.ClassDef) else []
        for node in outside:
            _join(found, effects_of(node, known, local=local))
        names = {_last_name(each) for each in tree.decorator_list}
        found.world |= bool(names - _HARMLESS)
        return found
    objects = local | known.bound - known.imported.keys()
    for name in names_of(tree).loads - local:
        _mention(name, found, known)
    for node in ast.walk(tree) if local else walk(tree):
        if isinstance(node, (ast.Attribute, ast.Subscript)) and not isinstance(node.ctx, ast.Load):
            found.mutates |= _path(node) & objects
            found.world |= not _path(node) & objects  # `plt.rcParams[name] = value`
        elif isinstance(node, ast.Attribute) and node.attr in MUTATORS:
            found.mutates |= _path(node) & objects
        elif isinstance(node, ast.AugAssign):
            found.mutates |= _path(node.target) & objects
        elif isinstance(node, ast.Call):
            _call(node, found, known)
            if isinstance(node.func, ast.Attribute) and _CHANGING.match(node.func.attr):
                found.mutates |= _path(node.func) & objects
        elif (isinstance(node, ast.Expr) and not is_assertion(node)) or (
            isinstance(node, ast.Assign) and names_of(*node.targets).stores == {"_"}
        ):
            found.world |= _acts(node.value, known, objects)
        if isinstance(node, ast.Attribute) and node.attr == "random":
            found.mutates.add(RANDOM)
    return found


def _last_name(node: ast.expr) -> str:
    return called(node if isinstance(node, ast.Call) else ast.Call(node, [], []))


def _path(node: ast.AST) -> set[str]:
    """Return the names whose object `a.b[c].d(e).f` may be: `a`."""
    while not isinstance(node, ast.Name):
        if isinstance(node, (ast.Attribute, ast.Subscript, ast.Starred)):
            node = node.value
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            node = node.func.value
        else:
            return sources(node)
    return {node.id}


def _call(node: ast.Call, found: Effects, known: Known) -> None:
    name = called(node)
    found.prints |= bool(_DRAWING.search(name))
    for each in node.keywords:
        found.mutates |= _path(each.value) if each.arg == "out" else set()  # NumPy's
    if not isinstance(node.func, ast.Name):
        return
    if name in {"next", "setattr", "delattr"} and node.args:
        first = node.args[0]  # `next(each for each in rows)` changes nothing
        found.mutates |= set() if isinstance(first, ast.GeneratorExp) else _path(first)
    function = known.functions.get(name)
    if function and "" in function.mutates:  # it changes what it is given
        given = (*node.args, *(each.value for each in node.keywords))
        found.mutates |= set[str]().union(*(sources(each) for each in given))


def _mention(name: str, found: Effects, known: Known) -> None:
    """Note what using a name may change: a function may be called wherever it is named."""
    if name in known.stateful:
        found.mutates.add(name)
        found.prints |= name in known.drawing
    if name in known.imported:
        found.prints |= bool(_DRAWERS.match(known.imported[name]))
        if "random" in known.imported[name]:
            found.mutates.add(RANDOM)
    if function := known.functions.get(name):
        found.mutates |= function.mutates - {""}
        found.world |= function.world
        found.prints |= function.prints


def _acts(value: ast.expr, known: Known, objects: AbstractSet[str]) -> bool:
    """Say whether an expression whose value nobody takes may change what no name holds."""
    if isinstance(value, (ast.Await, ast.Yield, ast.YieldFrom)):
        return True
    if not isinstance(value, ast.Call):
        return any(
            _acts(each, known, objects) for each in ast.walk(value) if isinstance(each, ast.Call)
        )
    name = called(value)
    if isinstance(value.func, ast.Name):
        pure = name in _BUILTINS - _ACTS and name not in known.bound
        return not (pure or name in known.functions or name in _PRINTS)
    # `rows.append(x)` counts as a change of `rows`; `set.add(x)` of a module may do anything
    return not (name in MUTATORS and _path(value.func) & objects)


def known_of(trees: Iterable[ast.Module]) -> Known:
    """Return what the code of a page tells about its names."""
    page = ast.Module([statement for tree in trees for statement in tree.body], [])
    imported: dict[str, str] = {}
    for node in ast.walk(page):
        if isinstance(node, ast.ImportFrom):
            imported |= {bound_by(each): f"{node.module}.{each.name}" for each in node.names}
        elif isinstance(node, ast.Import):
            imported |= {bound_by(each): each.name for each in node.names}
    bound = frozenset(names_of(page).stores | names_of(page).writes)
    defined = list(definitions(page))
    stateful_by = _STATEFUL | {node.name for node in defined if _keeps_state(node)}
    stateful = {
        name
        for node in walk(page) if isinstance(node, (ast.Assign, ast.AnnAssign, ast.withitem))
        for name in _kept_by(node, stateful_by)
    }  # fmt: skip
    drawing = _drawing(page, {name for name, module in imported.items() if _DRAWERS.match(module)})
    known = Known(imported, bound, frozenset(drawing), frozenset(stateful | drawing))
    for _ in range(len(defined) + 1):  # until what functions call is counted as theirs
        functions: dict[str, Effects] = {}
        for node in defined:
            _join(functions.setdefault(node.name, Effects()), _function_effects(node, known))
        if functions == known.functions:
            break
        known = Known(imported, bound, known.drawing, known.stateful, functions)
    return known


def _drawing(page: ast.Module, drawers: set[str]) -> set[str]:
    """Return the names of what drawing gives: `fig, ax = plt.subplots()`, `bars = ax.bar(...)`."""
    found, size = set[str](), -1
    while size != len(found):
        size = len(found)
        for names, value in bindings(page):
            call = value if isinstance(value, ast.Call) else None
            function = call and isinstance(call.func, ast.Name) and call.func.id
            drawn = function in drawers or bool(call and _DRAWING.search(called(call)))
            if drawn or (not function and _path(value) & (found | drawers)):
                found |= names
    return found


def _kept_by(
    node: ast.Assign | ast.AnnAssign | ast.withitem, made_by: AbstractSet[str]
) -> set[str]:
    """Return the names that a statement gives to something that changes as one uses it."""
    value = node.context_expr if isinstance(node, ast.withitem) else node.value
    if value is None or not _is_stateful(value, made_by):
        return set()
    if isinstance(node, ast.Assign):
        return {each.id for each in node.targets if isinstance(each, ast.Name)}
    target = node.optional_vars if isinstance(node, ast.withitem) else node.target
    return names_of(target).stores if target else set()


def _is_stateful(value: ast.expr, made_by: AbstractSet[str]) -> bool:
    """Say whether a value changes as one uses it."""
    if any(isinstance(each, ast.Call) and called(each) in _SEEDED for each in ast.walk(value)):
        return True
    if not isinstance(value, ast.Call):
        return isinstance(value, ast.GeneratorExp)
    itertools = isinstance(value.func, ast.Attribute) and "itertools" in names_of(value.func).loads
    return itertools or (isinstance(value.func, ast.Name) and value.func.id in made_by)


def _keeps_state(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> bool:
    """Say whether what comes of a call changes as one uses it."""
    if not isinstance(node, ast.ClassDef):
        return any(isinstance(each, (ast.Yield, ast.YieldFrom)) for each in ast.walk(node))
    methods = [each for each in node.body if isinstance(each, FUNCTIONS)]
    return any(
        isinstance(each, ast.Attribute) and not isinstance(each.ctx, ast.Load)
        for method in methods if method.name not in {"__init__", "__post_init__"}
        for each in ast.walk(method)
    )  # fmt: skip


def _join(into: Effects, other: Effects) -> None:
    into.mutates |= other.mutates
    into.world |= other.world
    into.prints |= other.prints


def _is_new(value: ast.expr, known: Known) -> bool:
    """Say whether a value is taken to be no part of another: a copy, or from a package."""
    if not isinstance(value, ast.Call):
        return False
    if isinstance(value.func, ast.Name):
        return value.func.id not in known.bound or value.func.id in known.imported
    return called(value) in {"copy", "deepcopy"} or bool(_path(value.func) & known.imported.keys())


def _function_effects(
    node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef, known: Known
) -> Effects:
    """Return what a call of a function changes; "" stands for what it is given."""
    if isinstance(node, ast.ClassDef):
        found = Effects()
        for each in node.body:
            if isinstance(each, FUNCTIONS):
                _join(found, _function_effects(each, known))
        found.mutates.discard("")  # its methods change the object itself
        return found
    body = ast.Module(node.body, [])
    inner = names_of(*node.body)
    given = parameters(node)
    local = (inner.stores | given | {""}) - inner.declared
    found = effects_of(body, known, local=local)
    origins = dict[str, set[str]]()
    for names, value in bindings(body):
        if not _is_new(value, known):
            for name in names:
                origins.setdefault(name, set()).update(sources(value))
    reached = reach(found.mutates, origins)
    found.mutates = (reached - local) | inner.writes | (inner.declared & inner.stores)
    if reached & given:
        found.mutates.add("")
    return found
