"""Formulas of the front matter: arithmetic on a few names, checked when read, and made C."""

from __future__ import annotations

import ast
import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass

#: The names that a formula may use, and their C: bytes of the message, ranks, the most ranks that
#: share a host, and bytes of an element of a reduction.
NAMES = {"n": "n", "p": "p", "m": "most_on_a_host(cc)", "e": "bytes_of_element(call)"}

#: Functions, and operators that are functions in C; all take doubles there.
_FUNCTIONS = {"max": "larger", "min": "smaller"}
_QUOTIENTS: dict[type[ast.operator], str] = {ast.Div: "quotient", ast.FloorDiv: "whole_quotient"}
_OPERATORS: dict[type[ast.operator], str] = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*"}
_ALLOWED = "numbers, + - * / //, max, min, and the names {}"


@dataclass(frozen=True)
class Formula:
    """An expression in Python's syntax, of whole numbers that are 0 or more.

    Attributes:
        text: as in the front matter.
    """

    text: str

    def value(self, names: Mapping[str, float]) -> float:
        """Return its value; a division by 0 gives infinity, as in C."""
        return _value(_parse(self.text), names)

    def to_c(self) -> str:
        """Return it in C, on doubles, which no product of sizes overflows."""
        return _c(_parse(self.text))


#: The scratch of algorithms that allocate no memory.
NOTHING = Formula("0")


def read_formula(
    value: object, parameters: Collection[str], names: Collection[str] = tuple(NAMES)
) -> Formula:
    """Return the formula of a front matter, on some of :data:`NAMES` and parameters.

    Raises:
        TypeError: it is neither a text nor a number.
        ValueError: it is not a formula.
    """
    if isinstance(value, bool) or not isinstance(value, int | str):
        raise TypeError("expected a formula, such as `2 * n`")
    known = {*names, *parameters}
    try:
        _check(_parse(str(value)), known)
    except (SyntaxError, ValueError, RecursionError) as error:
        listed = _ALLOWED.format(", ".join((*names, *parameters)))
        raise ValueError(f"expected a formula of {listed}") from error
    return Formula(str(value))


def _parse(text: str) -> ast.expr:
    return ast.parse(text.strip(), mode="eval").body


def _check(node: ast.expr, known: Collection[str]) -> None:
    """Raise ValueError for what a formula may not contain."""
    match node:
        case ast.Constant(value=int() as value) if not isinstance(value, bool):
            return
        case ast.Name(id=name) if name in known:
            return
        case ast.BinOp(left, operator, right) if type(operator) in {**_OPERATORS, **_QUOTIENTS}:
            _check(left, known)
            _check(right, known)
        case ast.Call(ast.Name(id=name), [first, second], []) if name in _FUNCTIONS:
            _check(first, known)
            _check(second, known)
        case _:
            raise ValueError(ast.unparse(node))


def _value(node: ast.expr, names: Mapping[str, float]) -> float:
    match node:
        case ast.Constant(value=int() as value):
            return float(value)
        case ast.Name(id=name):
            return float(names[name])
        case ast.Call(ast.Name(id=name), [first, second]):
            choose = max if name == "max" else min
            return choose(_value(first, names), _value(second, names))
        case ast.BinOp(left, operator, right):
            return _apply(operator, _value(left, names), _value(right, names))
    raise ValueError(ast.unparse(node))


def _apply(operator: ast.operator, left: float, right: float) -> float:
    match operator:
        case ast.Add():
            return left + right
        case ast.Sub():
            return left - right
        case ast.Mult():
            return left * right
    if right == 0:
        return math.inf
    return left / right if isinstance(operator, ast.Div) else float(left // right)


def _c(node: ast.expr) -> str:
    match node:
        case ast.Constant(value=value):
            return str(value)
        case ast.Name(id=name):
            return NAMES.get(name, f"(double)parameters->{name}")
        case ast.Call(ast.Name(id=name), [first, second]):
            return f"{_FUNCTIONS[name]}({_c(first)}, {_c(second)})"
        case ast.BinOp(left, operator, right) if type(operator) in _QUOTIENTS:
            return f"{_QUOTIENTS[type(operator)]}({_c(left)}, {_c(right)})"
        case ast.BinOp(left, operator, right):
            before, sign, after = _c(left), _OPERATORS[type(operator)], _c(right)
            if _is_sum(left) and sign == "*":
                before = f"({before})"
            if _is_sum(right) and sign != "+":
                after = f"({after})"
            return f"{before} {sign} {after}"
    raise ValueError(ast.unparse(node))


def _is_sum(node: ast.expr) -> bool:
    return isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Sub)
