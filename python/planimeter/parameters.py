"""Parameters of a module: permitted values, unit, default and help.

planimeter reads them from a script, so that it checks `--set KEY=VALUE` before a measurement, and
`planimeter list my_module.py` lists them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Parameter:
    """One parameter. Created by `Integer`, `Integers`, `Number`, `Word` or `Words`."""

    key: str
    takes: list[Any]
    default: str
    unit: str
    help: str
    read: Callable[[str], Any]

    def described(self) -> dict[str, Any]:
        """Returns it in planimeter's format."""
        return {
            "key": self.key,
            "takes": self.takes,
            "default": self.default,
            "unit": self.unit,
            "help": self.help,
        }


def _made(key: str, takes: list[Any], default: str, unit: str, text: str, read: Callable[[str], Any]) -> Parameter:
    if not (key.isidentifier() and key == key.lower()):
        raise ValueError(f"invalid parameter name {key!r} (hint: use lower-case letters, digits and _)")
    return Parameter(key, takes, default, unit, text, read)


def _within(key: str, values: Sequence[float], least: float, most: float) -> None:
    for value in values:
        if not (math.isfinite(value) and least <= value <= most):
            raise ValueError(f"the default {value} of {key} is not within {least} to {most}")


def Integer(key: str, least: int, most: int, *, default: int, unit: str = "", help: str = "") -> Parameter:
    """A whole number from `least` to `most`."""
    _within(key, [default], least, most)
    return _made(key, ["integer", least, most], str(default), unit, help, int)


def Integers(
    key: str, least: int, most: int, *, default: Sequence[int], unit: str = "", help: str = ""
) -> Parameter:
    """Several whole numbers from `least` to `most`. As the `axis` of a module, the module runs once for each."""
    _within(key, default, least, most)
    text = ",".join(map(str, default))
    return _made(key, ["integers", least, most], text, unit, help, lambda it: [int(one) for one in it.split(",")])


def Number(key: str, least: float, most: float, *, default: float, unit: str = "", help: str = "") -> Parameter:
    """A number from `least` to `most`."""
    _within(key, [default], least, most)
    return _made(key, ["number", float(least), float(most)], str(default), unit, help, float)


def _known(key: str, words: Sequence[str], default: Sequence[str]) -> None:
    for word in default:
        if word not in words:
            raise ValueError(f"the default {word!r} of {key} is not one of {', '.join(words)}")


def Word(key: str, words: Sequence[str], *, default: str, help: str = "") -> Parameter:
    """One of these words."""
    _known(key, words, [default])
    return _made(key, ["word", *words], default, "", help, str)


def Words(key: str, words: Sequence[str], *, default: Sequence[str], help: str = "") -> Parameter:
    """Some of these words."""
    _known(key, words, default)
    return _made(key, ["words", *words], ",".join(default), "", help, lambda it: it.split(","))
