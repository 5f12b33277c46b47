"""Earlier names of the package. They keep working, with a hint at the present name."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

T = TypeVar("T")


def hint(old: str, new: str) -> None:
    """Prints where a script uses an earlier name."""
    warnings.warn(f"{old} is now {new} (hint: use the new name)", FutureWarning, stacklevel=3)


class Renamed:
    """An attribute under its earlier name."""

    def __init__(self, new: str) -> None:
        self.new = new

    def __set_name__(self, owner: type, name: str) -> None:
        self.old = f"{owner.__name__}.{name}"

    def __get__(self, instance: object, owner: type) -> Any:
        if instance is None:
            return self
        hint(self.old, self.new)
        return getattr(instance, self.new)


def earlier_arguments(**names: str) -> Callable[[type[T]], type[T]]:
    """Lets a class accept earlier names of its keyword arguments."""

    def accepting(kind: type[T]) -> type[T]:
        create = kind.__init__

        def __init__(self: T, *values: Any, **keys: Any) -> None:
            for old in keys.keys() & names.keys():
                hint(f"{kind.__name__}({old}=...)", names[old])
                keys[names[old]] = keys.pop(old)
            create(self, *values, **keys)

        setattr(kind, "__init__", __init__)
        return kind

    return accepting


def earlier_methods(kind: type, names: Mapping[str, str]) -> None:
    """Lets a subclass define methods and attributes under their earlier names."""
    for old, new in names.items():
        if old in vars(kind) and new not in vars(kind):
            hint(f"{kind.__name__}.{old}", new)
            setattr(kind, new, vars(kind)[old])


def earlier_keys(keys: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    """Returns a dict with the present names of its keys."""
    for old in keys.keys() & names.keys():
        hint(repr(old), repr(names[old]))
    return {names.get(key, key): value for key, value in keys.items()}
