"""Import libraries without loading optional or re-exported parts that are not needed."""

from __future__ import annotations

import ast
import importlib.util
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.abc import Loader
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from types import ModuleType
from typing import Any


@contextmanager
def hidden_modules(*names: str) -> Iterator[None]:
    """Make these modules look uninstalled to imports within the block. Modules that are already loaded are
    unaffected."""
    hidden = [name for name in names if name not in sys.modules]
    sys.modules.update(dict.fromkeys(hidden))  # type: ignore[arg-type]  # None makes the import fail
    try:
        yield
    finally:
        for name in hidden:
            del sys.modules[name]


@contextmanager
def placeholder_modules(**modules: str) -> Iterator[None]:
    """Replace each module, within the block, by a stub with a class of the given name whose methods accept anything and
    do nothing.

    For libraries that import another one only for a type name or an unused part. Afterwards the real modules can be
    imported. Modules that are already loaded are unaffected.
    """
    absent = {name: class_name for name, class_name in modules.items() if name not in sys.modules}
    for name, class_name in absent.items():
        sys.modules[name] = ModuleType(name)
        setattr(sys.modules[name], class_name, type(class_name, (_Placeholder,), {}))
    try:
        yield
    finally:
        for name in absent:
            del sys.modules[name]


class _Placeholder:
    def __init__(self, *arguments: Any, **options: Any) -> None:
        pass

    def __getattr__(self, method: str) -> Callable[..., None]:
        return lambda *arguments, **options: None


@contextmanager
def deferred_reexports(library: str, unused_types: tuple[str, ...] = ()) -> Iterator[None]:
    """Make packages of `library` that are imported within the block load their re-exports lazily.

    Some SDKs have packages of two thousand types whose `__init__` imports all of them. A package whose `__init__` does
    more than import is loaded normally; only imports from the library itself are deferred, and not `import *`.

    Modules whose names end with one of `unused_types` hold types of which the caller makes no instances: imports within
    the block get stand-ins, later ones the real modules.
    """
    finder = _ReexportFinder(library, unused_types)
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)
        # A copy: other threads import meanwhile.
        stand_ins = [name for name, module in sys.modules.copy().items() if isinstance(module, _StandInModule)]
        for name in stand_ins:
            del sys.modules[name]
            package, _, child = name.rpartition(".")
            vars(sys.modules[package]).pop(child, None)


class _ReexportFinder:
    def __init__(self, library: str, unused_types: tuple[str, ...]) -> None:
        self.library = library
        self.unused_types = unused_types

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name != self.library and not name.startswith(f"{self.library}."):
            return None
        if self.unused_types and name.endswith(self.unused_types):
            return ModuleSpec(name, _StandInLoader())
        spec = PathFinder.find_spec(name, path, target)
        if spec is None or spec.submodule_search_locations is None or not isinstance(spec.loader, SourceFileLoader):
            return None
        body = ast.parse(spec.loader.get_data(spec.loader.path)).body
        if name == self.library or all(map(_is_reexport, body)):
            spec.loader = _ReexportLoader(spec.loader, dict(_reexports(name, body)))
        return spec


class _StandInLoader(Loader):
    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return _StandInModule(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        """Do nothing: there is a class for each name that is asked for."""


class _StandInModule(ModuleType):
    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        value = _stand_in(self.__name__, name)
        setattr(self, name, value)
        return value


def _stand_in(module: str, name: str) -> type:
    """Return a class for annotations, which makes instances of the real one."""

    def make(cls: type, *arguments: Any, **options: Any) -> Any:
        return getattr(importlib.import_module(module), name)(*arguments, **options)

    # Generic types are subscripted in annotations.
    generic = classmethod(lambda cls, item: cls)
    return type(name, (), {"__new__": make, "__class_getitem__": generic, "__module__": module})


class _ReexportLoader(SourceFileLoader):
    def __init__(self, loader: SourceFileLoader, sources: Mapping[str, tuple[str, str]]) -> None:
        super().__init__(loader.name, loader.path)
        self.sources = sources  # names to (defining module, name there; "": the module itself)

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return _ReexportingPackage(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        """Do nothing: names are resolved on access."""


class _ReexportingPackage(ModuleType):
    def __getattr__(self, name: str) -> Any:
        loader = self.__spec__ and self.__spec__.loader
        if not isinstance(loader, _ReexportLoader) or name not in loader.sources:
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        source, there = loader.sources[name]
        module = importlib.import_module(source)
        value = getattr(module, there) if there else module
        if not isinstance(module, _StandInModule):
            setattr(self, name, value)
        return value


def _is_reexport(statement: ast.stmt) -> bool:
    match statement:
        case ast.ImportFrom(module="__future__") | ast.Expr(value=ast.Constant()):
            return True
        case ast.Assign(targets=[ast.Name(id="__all__")]):
            return True
        case ast.ImportFrom(level=level, names=names):
            return level > 0 and names[0].name != "*"
    return False


def _reexports(package: str, body: Sequence[ast.stmt]) -> Iterator[tuple[str, tuple[str, str]]]:
    for statement in body:
        if isinstance(statement, ast.ImportFrom) and statement.level:
            for alias in statement.names:
                there = (statement.module, alias.name) if statement.module else (alias.name, "")
                source = importlib.util.resolve_name("." * statement.level + there[0], package)
                yield alias.asname or alias.name, (source, there[1])
