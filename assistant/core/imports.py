"""Import libraries without loading optional or re-exported parts that are not needed."""

from __future__ import annotations

import dis
import importlib
import importlib.util
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from types import CodeType, ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from importlib.abc import Loader
else:
    # Its module imports what reads files of packages; a finder may return any object with the two methods.
    Loader = object


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


@contextmanager
def no_package_metadata() -> Iterator[None]:
    """Make libraries that are imported within the block find no plugins and no versions of installed packages.

    To look for plugins reads a file of every installed package, and loads the standard library's parser of mails. Call
    it before threads start: what another thread imports meanwhile finds none either."""
    name = "importlib.metadata"
    known = sys.modules.get(name)
    stub: Any = ModuleType(name)
    stub.PackageNotFoundError = ModuleNotFoundError
    stub.entry_points = lambda **_: ()
    stub.version = _find_no_version
    sys.modules[name] = vars(importlib)["metadata"] = stub
    try:
        yield
    finally:
        del sys.modules[name], vars(importlib)["metadata"]
        if known is not None:
            sys.modules[name] = vars(importlib)["metadata"] = known


def _find_no_version(package: str) -> str:
    raise ModuleNotFoundError(f"the version of {package} was not looked up")


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

    Modules whose names end with one of `unused_types` hold types of which instances are seldom or never made: imports
    within the block get stand-ins, as of `stand_in_modules`.
    """
    finder = _ReexportFinder(library, unused_types)
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)
        _remove_stand_ins(library)


@contextmanager
def stand_in_modules(*names: str) -> Iterator[None]:
    """Put stand-ins in the place of these modules within the block: they have a class for each name that is asked for,
    which makes instances of the real one. Later imports get the real modules. Modules that are already loaded are
    unaffected."""
    absent = [name for name in names if name not in sys.modules]
    sys.modules.update((name, _StandInModule(name)) for name in absent)
    try:
        yield
    finally:
        _remove_stand_ins(*absent)


def _remove_stand_ins(*libraries: str) -> None:
    """Remove those of these libraries or modules; other threads may import with others meanwhile."""
    for name, module in sys.modules.copy().items():
        if isinstance(module, _StandInModule) and f"{name}.".startswith(tuple(f"{library}." for library in libraries)):
            del sys.modules[name]
            package, _, child = name.rpartition(".")
            if package in sys.modules:
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
        if name == self.library or _only_imports(spec.loader):
            spec.loader = _ReexportLoader(spec.loader)
        return spec


def _only_imports(loader: SourceFileLoader) -> bool:
    code = loader.get_code(loader.name)
    return code is not None and _read_reexports(loader.name, code)[0]


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
    def __init__(self, loader: SourceFileLoader) -> None:
        super().__init__(loader.name, loader.path)

    @cached_property
    def sources(self) -> Mapping[str, tuple[str, str]]:
        """Names to (defining module, name there; "": the module itself). Of a package with two thousand of them that
        nobody asks for, they would be half a megabyte."""
        code = self.get_code(self.name)
        return {} if code is None else _read_reexports(self.name, code)[1]

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


# What the code of a module with nothing but imports, `__all__` and a docstring consists of, by version of Python.
_IMPORTING = frozenset(
    {"IMPORT_NAME", "IMPORT_FROM", "STORE_NAME", "POP_TOP", "LOAD_CONST", "LOAD_SMALL_INT", "RESUME", "NOP", "CACHE"}
    | {"BUILD_LIST", "LIST_EXTEND", "BUILD_TUPLE", "RETURN_VALUE", "RETURN_CONST", "NOT_TAKEN", "EXTENDED_ARG"}
)


def _read_reexports(package: str, code: CodeType) -> tuple[bool, dict[str, tuple[str, str]]]:
    """Return whether a package's code only imports from the library itself, and by the names that these imports bind
    the defining module and the name there ("": the module itself).

    Read from the compiled code, which is cached on disk: parsing the source takes longer, and two megabytes."""
    sources: dict[str, tuple[str, str]] = {}
    only_imports = True
    values: list[Any] = []  # constants before an import: its level, and its names
    module = name = ""
    level = 0
    for step in dis.get_instructions(code):
        match step.opname:
            case "LOAD_CONST" | "LOAD_SMALL_INT":
                values.append(step.argval)
            case "IMPORT_NAME":
                module, (level, names) = step.argval, values[-2:]
                if module != "__future__" and (level == 0 or not names or names == ("*",)):
                    only_imports = False
            case "IMPORT_FROM":
                name = step.argval
            case "STORE_NAME":
                if name and level:
                    there = (module, name) if module else (name, "")
                    sources[step.argval] = importlib.util.resolve_name("." * level + there[0], package), there[1]
                elif not name and step.argval not in ("__all__", "__doc__"):
                    only_imports = False
                name = ""
            case other:
                only_imports = only_imports and other in _IMPORTING
    return only_imports, sources
