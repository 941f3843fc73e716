"""The names in a piece of Python: what it reads, binds and changes, as far as its text tells."""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Iterable, Iterator, Mapping, Set as AbstractSet
from dataclasses import dataclass, field

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
OPAQUE = frozenset({"exec", "eval", "globals", "locals", "vars", "get_ipython", "__import__"})
MUTATORS = frozenset(
    {
        "append", "appendleft", "extend", "extendleft", "insert", "add", "update", "setdefault",
        "pop", "popleft", "popitem", "remove", "discard", "clear", "sort", "reverse", "rotate",
        "move_to_end", "subtract", "send", "put", "put_nowait", "get_nowait",
        "difference_update", "intersection_update", "symmetric_difference_update",
    }
)  # fmt: skip
_GIVES = frozenset({"pop", "popleft", "popitem", "setdefault", "send", "get_nowait"})


@dataclass
class Names:
    """The names that a piece of code reads from around it, and those that it binds there."""

    loads: set[str] = field(default_factory=set)
    stores: set[str] = field(default_factory=set)
    declared: set[str] = field(default_factory=set)  # `global`
    writes: set[str] = field(default_factory=set)  # globals that a function in it assigns to
    opaque: bool = False  # it may read or bind any name


class _Collector(ast.NodeVisitor):
    def __init__(self) -> None:
        self.names = Names()

    def visit_Name(self, node: ast.Name) -> None:
        (self.names.loads if isinstance(node.ctx, ast.Load) else self.names.stores).add(node.id)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        if isinstance(node.target, ast.Name):
            self.names.loads.add(node.target.id)
        self.generic_visit(node)

    def visit_Delete(self, node: ast.Delete) -> None:
        self.names.loads |= {each.id for each in node.targets if isinstance(each, ast.Name)}
        self.generic_visit(node)

    def visit_Global(self, node: ast.Global | ast.Nonlocal) -> None:
        self.names.declared |= set(node.names)

    visit_Nonlocal = visit_Global  # noqa: N815

    def visit_alias(self, node: ast.alias) -> None:
        self.names.stores.add(bound_by(node))

    def visit_ExceptHandler(self, node: ast.ExceptHandler) -> None:
        self.names.stores |= {node.name} if node.name else set()
        self.generic_visit(node)

    def visit_MatchAs(self, node: ast.MatchAs | ast.MatchStar) -> None:
        self.names.stores |= {node.name} if node.name else set()
        self.generic_visit(node)

    visit_MatchStar = visit_MatchAs  # noqa: N815

    def visit_MatchMapping(self, node: ast.MatchMapping) -> None:
        self.names.stores |= {node.rest} if node.rest else set()
        self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> None:
        called = node.func.id if isinstance(node.func, ast.Name) else ""
        self.names.opaque |= called in OPAQUE and not (called == "vars" and node.args)
        if isinstance(node.func, ast.Attribute) and node.func.attr in {"query", "eval"}:
            for each in ast.walk(node):  # pandas: names behind @ in a string
                if isinstance(each, ast.Constant) and isinstance(each.value, str):
                    self.names.loads |= set(re.findall(r"@(\w+)", each.value))
        self.generic_visit(node)

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        inner = names_of(*node.decorator_list, *node.bases, *node.keywords, *node.body)
        self._take(inner, local=set())
        self.names.stores.add(node.name)

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        for each in (*node.decorator_list, node.args, *([node.returns] if node.returns else [])):
            self.visit(each)
        self._function(node, node.body)
        self.names.stores.add(node.name)

    visit_AsyncFunctionDef = visit_FunctionDef  # noqa: N815

    def visit_Lambda(self, node: ast.Lambda) -> None:
        self.visit(node.args)
        self._function(node, [node.body])

    def visit_arg(self, node: ast.arg) -> None:
        if node.annotation:
            self.visit(node.annotation)

    def _function(
        self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda, body: Iterable[ast.AST]
    ) -> None:
        inner = names_of(*body)
        self._take(inner, local=(inner.stores | parameters(node)) - inner.declared)
        self.names.writes |= inner.stores & inner.declared

    def _comprehension(self, node: ast.AST) -> None:
        inner = names_of(*ast.iter_child_nodes(node))
        bound = {
            name for each in ast.walk(node) if isinstance(each, ast.comprehension)
            for name in names_of(each.target).stores
        }  # fmt: skip
        self._take(inner, local=bound)
        self.names.stores |= inner.stores - bound

    visit_ListComp = visit_SetComp = _comprehension  # noqa: N815
    visit_DictComp = visit_GeneratorExp = _comprehension  # noqa: N815

    def _take(self, inner: Names, *, local: set[str]) -> None:
        self.names.loads |= inner.loads - local
        self.names.writes |= inner.writes
        self.names.opaque |= inner.opaque


def names_of(*nodes: ast.AST) -> Names:
    r"""Return the names that code reads and binds, those inside functions left out.

    >>> code = ast.parse("def f(a, b=c):\n    d = a\n    return d + e\n")
    >>> sorted(names_of(code).loads), names_of(code).stores
    (['c', 'e'], {'f'})
    """
    collector = _Collector()
    for node in nodes:
        collector.visit(node)
    return collector.names


def read_at_once(node: ast.stmt) -> set[str]:
    """Return the names that a statement reads when it runs; a function reads when it is called."""
    if isinstance(node, FUNCTIONS) and not node.decorator_list:
        return names_of(node.args, *([node.returns] if node.returns else [])).loads
    return names_of(node).loads


def bound_by(alias: ast.alias) -> str:
    """Return the name that an import gives."""
    return alias.asname or alias.name.partition(".")[0]


def parameters(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> set[str]:
    """Return the names of a function's parameters."""
    return {each.arg for each in ast.walk(node.args) if isinstance(each, ast.arg)}


def called(node: ast.Call) -> str:
    """Return the last name of what is called."""
    return getattr(node.func, "attr", getattr(node.func, "id", ""))


def is_assertion(node: ast.stmt) -> bool:
    """Say whether a statement only makes sure of something: `assert`, `assert_allclose(...)`."""
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        return called(node.value).startswith("assert")
    return isinstance(node, (ast.Assert, ast.Raise))


def gives_nothing(node: ast.expr) -> bool:
    """Say whether an expression is known to have no value to show, as `rows.append(x)`."""
    return isinstance(node, ast.Call) and called(node) in (MUTATORS - _GIVES) | {"print"}


def sources(node: ast.AST | None) -> set[str]:
    """Return the names whose objects a value may be part of, or may hold.

    >>> sorted(sources(ast.parse("{'a': rows[k], 'b': 2 * [n], 'c': f(x).y}", mode="eval").body))
    ['n', 'rows', 'x']
    """
    if isinstance(node, ast.Name):
        return {node.id}
    if isinstance(node, (ast.Attribute, ast.Subscript, ast.Starred, ast.Await, ast.NamedExpr)):
        return sources(node.value)
    if isinstance(node, ast.Call):
        own = sources(node.func.value) if isinstance(node.func, ast.Attribute) else set()
        given = (*node.args, *(each.value for each in node.keywords))
        return own.union(*(sources(each) for each in given))
    if isinstance(node, _COMPREHENSIONS):
        parts = [node.value, node.key] if isinstance(node, ast.DictComp) else [node.elt]
        found = set[str]().union(*(sources(part) for part in parts))
        found -= names_of(*(each.target for each in node.generators)).stores
        return found.union(*(sources(each.iter) for each in node.generators))
    held = (ast.Tuple, ast.List, ast.Set, ast.Dict, ast.IfExp, ast.BoolOp, ast.BinOp)
    if isinstance(node, held):
        return set[str]().union(*(sources(each) for each in ast.iter_child_nodes(node)))
    return set()


def bindings(tree: ast.AST) -> Iterator[tuple[set[str], ast.expr]]:
    r"""Yield what code binds outside its functions: names, and the value that they come from.

    >>> code = ast.parse("for a, b in zip(x, y):\n    c = d = 1\n")
    >>> [(sorted(names), ast.unparse(value)) for names, value in bindings(code)]
    [(['a'], 'x'), (['b'], 'y'), (['c'], '1'), (['d'], '1'), (['d'], 'c')]
    """
    for node in walk(tree):
        if isinstance(node, ast.Assign):
            for target in node.targets:
                yield from _paired(target, node.value)
            for target in node.targets[1:]:  # `a = b = []` is one list
                yield names_of(target).stores, node.targets[0]
        elif isinstance(node, (ast.AnnAssign, ast.AugAssign, ast.NamedExpr)) and node.value:
            yield names_of(node.target).stores, node.value
        elif isinstance(node, (ast.For, ast.AsyncFor)):
            yield from _paired(node.target, node.iter)
        elif isinstance(node, ast.withitem) and node.optional_vars:
            yield names_of(node.optional_vars).stores, node.context_expr


def _paired(target: ast.expr, value: ast.expr) -> Iterator[tuple[set[str], ast.expr]]:
    """Yield the names of a target, each with its part of the value where one can tell."""
    parts: list[ast.expr] = []
    if isinstance(value, (ast.Tuple, ast.List)):
        parts = value.elts
    elif isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.args:
        number = ast.Constant(0)
        parts = {"zip": value.args, "enumerate": [number, value.args[0]]}.get(value.func.id, [])
    own = target.elts if isinstance(target, (ast.Tuple, ast.List)) else []
    if len(parts) == len(own) and not any(isinstance(each, ast.Starred) for each in (*parts, *own)):
        for each, part in zip(own, parts, strict=True):
            yield from _paired(each, part)
    if not own or len(parts) != len(own):
        yield names_of(target).stores, value


def stored(tree: ast.AST) -> Iterator[tuple[ast.expr, ast.expr]]:
    """Yield what code puts into objects: `x[k] = value`, `x.append(value)`, and where to."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign):
            for target in node.targets:
                if isinstance(target, (ast.Attribute, ast.Subscript)):
                    yield target.value, node.value
                    yield target.value, node.targets[0]
        elif isinstance(node, ast.AugAssign):
            yield node.target, node.value
        elif isinstance(node, ast.Call) and called(node) in MUTATORS:
            for value in (*node.args, *(each.value for each in node.keywords)):
                yield node.func, value


def walk(tree: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes of code, those inside functions with a name left out."""
    yield tree
    for node in ast.iter_child_nodes(tree):
        if not isinstance(node, FUNCTIONS):
            yield from walk(node)


def definitions(
    tree: ast.AST,
) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef]:
    """Yield the functions and classes of code, those inside one left out."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, (*FUNCTIONS, ast.ClassDef)):
            yield node
        elif not isinstance(node, ast.expr):
            yield from definitions(node)


def reach(start: Iterable[str], edges: Mapping[str, Iterable[str]]) -> set[str]:
    """Return all that one comes to from some names."""
    found, todo = set[str](), list(start)
    while todo:
        name = todo.pop()
        if name not in found:
            found.add(name)
            todo += edges.get(name, ())
    return found


def blocks(statement: ast.stmt) -> list[list[ast.stmt]]:
    """Return the blocks of a compound statement that may lose statements of theirs."""
    if not isinstance(statement, (ast.For, ast.With, ast.If)):
        return []
    inside = statements_in([statement])
    if statement.body[0].lineno <= _last_line(statement) or any(
        isinstance(each, (ast.Break, ast.Continue, ast.Return)) for each in inside
    ):
        return []
    return [body for body in (statement.body, getattr(statement, "orelse", [])) if body]


def header(statement: ast.stmt) -> list[ast.AST]:
    """Return what stands in the first line of a loop, a `with` or an `if`."""
    if isinstance(statement, ast.For):
        return [statement.target, statement.iter]
    return list(statement.items) if isinstance(statement, ast.With) else [statement.test]  # type: ignore[attr-defined]


def _last_line(statement: ast.stmt) -> int:
    return max(getattr(each, "end_lineno", 0) for each in header(statement))


def statements_in(body: Iterable[ast.AST]) -> set[ast.stmt]:
    """Return all statements of some code, those inside others included."""
    return {each for node in body for each in ast.walk(node) if isinstance(each, ast.stmt)}


def surely_bound(statement: ast.stmt) -> set[str]:
    """Return the names that a statement binds whatever happens."""
    if isinstance(statement, ast.Assign):
        return names_of(*statement.targets).stores
    if isinstance(statement, (*FUNCTIONS, ast.ClassDef)):
        return {statement.name}
    if isinstance(statement, (ast.Import, ast.ImportFrom)):
        return {bound_by(each) for each in statement.names if each.asname or "." not in each.name}
    if isinstance(statement, ast.AnnAssign) and statement.value:
        return names_of(statement.target).stores
    return names_of(statement).stores if isinstance(statement, ast.Delete) else set()


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
