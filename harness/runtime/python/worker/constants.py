"""In KernelBench's form, sizes are constants of a module. This finds them and runs the module with other
values.

A constant is replaced where the module sets it, so that everything derived from it changes, too.
"""

import ast
import types


def module_at(tree, path, sizes, name="reference"):
    """The module, with each name in `sizes` set to that value at its top level."""
    return executed(tree, path, sizes, types.ModuleType(name))


def executed(tree, path, sizes, module):
    body = []
    for statement in tree.body:
        body.append(statement)
        for target in _targets(statement):
            if target in sizes:
                value = ast.parse(repr(sizes[target]), mode="eval").body
                setting = ast.Assign(targets=[ast.Name(id=target, ctx=ast.Store())], value=value)
                body.append(ast.fix_missing_locations(ast.copy_location(setting, statement)))
    module.__file__ = path
    exec(compile(ast.Module(body=body, type_ignores=[]), path, "exec"), module.__dict__)
    return module


def names_set_by(tree):
    """Every name that the module's top level sets."""
    return {name for statement in tree.body for name in _targets(statement)}


def is_size(value):
    """A whole number, or several."""
    return type(value) is int or (isinstance(value, (tuple, list))
                                  and all(type(each) is int for each in value))


def _targets(statement):
    """Names that a top-level statement sets."""
    targets = (statement.targets if isinstance(statement, ast.Assign)
               else [statement.target] if isinstance(statement, ast.AnnAssign) else [])
    names = []
    for target in targets:
        for part in target.elts if isinstance(target, (ast.Tuple, ast.List)) else [target]:
            if isinstance(part, ast.Name):
                names.append(part.id)
    return names


def _whole_number(node):
    """The value of an expression that contains only numbers, else None."""
    if node is None or any(
            not isinstance(part, (ast.Constant, ast.BinOp, ast.UnaryOp, ast.operator, ast.unaryop,
                                  ast.expr_context))
            for part in ast.walk(node)):
        return None
    try:
        value = eval(compile(ast.Expression(body=node), "constant", "eval"), {"__builtins__": {}})
    except (ArithmeticError, TypeError, ValueError):
        return None
    return value if type(value) is int and 0 < value < 2**40 else None


class Constants:
    """Whole numbers that a module's top level sets without reference to other names: N = 128, N = 16 * 4,
    shape = (3, N, 256) (as shape_2)."""

    def __init__(self, tree):
        self.values, self.order, self._statements = {}, {}, {}
        self._tuples = {}  # name → (statement, [symbol or None])
        taken = names_set_by(tree)
        for statement in tree.body:
            if not isinstance(statement, ast.Assign):
                continue
            for target in statement.targets:
                self._read(target, statement, taken)

    def _read(self, target, statement, taken):
        value = statement.value
        is_list = isinstance(value, (ast.Tuple, ast.List))
        if isinstance(target, ast.Name) and is_list and len(statement.targets) == 1:
            symbols = []
            for i, part in enumerate(value.elts):
                number, symbol = _whole_number(part), f"{target.id}_{i}"
                symbols.append(symbol if number is not None and symbol not in taken else None)
                if symbols[-1]:
                    self._add(symbol, number, statement)
            self._tuples[target.id] = statement, symbols
        elif isinstance(target, ast.Name):
            self._add(target.id, _whole_number(value), statement)
        elif isinstance(target, ast.Tuple) and is_list and len(target.elts) == len(value.elts):
            for name, part in zip(target.elts, value.elts):
                if isinstance(name, ast.Name):
                    self._add(name.id, _whole_number(part), statement)

    def _add(self, name, value, statement):
        if value is not None:
            self._statements[name] = statement
            self.order.setdefault(name, len(self.order))
            self.values[name] = value

    def overrides(self, sizes):
        """The values that module_at() must set so that these symbols have these values."""
        settings = {name: value for name, value in sizes.items() if not self._tuple_of(name)}
        for name, (statement, symbols) in self._tuples.items():
            if any(symbol in sizes for symbol in symbols if symbol):
                numbers = [_whole_number(part) for part in statement.value.elts]
                if None not in numbers:  # a tuple of other constants changes with them
                    kind = list if isinstance(statement.value, ast.List) else tuple
                    settings[name] = kind(sizes.get(symbol, number)
                                          for symbol, number in zip(symbols, numbers))
        return settings

    def _tuple_of(self, symbol):
        return any(symbol in symbols for _, symbols in self._tuples.values())

    def rewritten(self, text, symbols, ties):
        """The module's text in which each of these symbols is a separate constant, and those in `ties` are
        set to another one."""
        lines = text.splitlines()
        edits = [(self._statements[follower].end_lineno, self._statements[follower].end_lineno,
                  [f"{follower} = {leader}"])
                 for follower, leader in ties.items() if not self._tuple_of(follower)]
        for name, (statement, places) in self._tuples.items():
            if not any(symbol in symbols or symbol in ties for symbol in places if symbol):
                continue
            parts = [ties.get(symbol) or ast.get_source_segment(text, part)
                     for symbol, part in zip(places, statement.value.elts)]
            new = [f"{symbol} = {part}" for symbol, part in zip(places, parts) if symbol in symbols]
            inside = ", ".join(symbol if symbol in symbols else part for symbol, part in zip(places, parts))
            whole = f"[{inside}]" if isinstance(statement.value, ast.List) else f"({inside},)"
            edits.append((statement.lineno - 1, statement.end_lineno, new + [f"{name} = {whole}"]))
        for first, end, new in sorted(edits, reverse=True):
            lines[first:end] = new
        return "\n".join(lines) + "\n"
