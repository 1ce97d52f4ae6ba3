"""Calls: entered where the callee is in the tree, looked up in the torch table where it is torch's, else summarised."""

from __future__ import annotations

import ast
from collections.abc import Hashable
from dataclasses import replace

from rebindlint.execution import (
    attributes,
    builtin_calls,
    elements,
    expressions,
    initial,
    layout,
    statements,
    tensors,
)
from rebindlint.execution.annotations import annotated
from rebindlint.execution.bounded import bounded_class, chosen_class
from rebindlint.execution.branches import handed
from rebindlint.execution.declared import declared
from rebindlint.execution.interpreter import MAX_DEPTH, Frame, Interpreter, Raised, Returned
from rebindlint.execution.oracle import FAR
from rebindlint.execution.outside import call_outside, parameter_of, summarise
from rebindlint.execution.values import (
    NOTHING,
    BoundMethod,
    ClassValue,
    Const,
    DictValue,
    Env,
    External,
    Function,
    ListValue,
    Obj,
    Partial,
    SuperValue,
    Tensor,
    Unknown,
    Value,
    is_stable,
    label_of,
)
from rebindlint.index.classes import ClassInfo, FunctionInfo
from rebindlint.index.dialect import HELPERS, classify
from rebindlint.index.hooks import POST_LOAD
from rebindlint.index.modules import text_of
from rebindlint.model import Binding, Dialect

__all__ = ["BUILTINS", "call", "enter", "evaluate_call", "instantiate"]

BUILTINS = builtin_calls.BUILTINS
_TRANSPARENT = frozenset(
    {
        *HELPERS,
        "replace_tensor",
        "copy_or_rebind",
        "alias_or_bind_derived_param",
        "bind_or_assign",
        "update_tensor_inplace",
    }
)
_SUPPORT = ("is_supported", "supports_", "_supports")


def evaluate_call(m: Interpreter, node: ast.Call, env: Env) -> Value:
    evaluate = expressions.evaluate
    if isinstance(node.func, ast.Name) and node.func.id == "super" and env.find("super") is None:
        return _super(m, node, env)
    callee = evaluate(m, node.func, env)
    args: list[Value] = []
    for argument in node.args:
        if isinstance(argument, ast.Starred):
            args.extend(expressions.items_of(m, evaluate(m, argument.value, env), argument)[0])
        elif isinstance(argument, ast.GeneratorExp) and isinstance(callee, External) and callee.label in ("any", "all"):
            args.append(expressions.generated(m, argument, env, callee.label == "any"))
        else:
            args.append(evaluate(m, argument, env))
    keywords: dict[str, Value] = {}
    for keyword in node.keywords:
        value = evaluate(m, keyword.value, env)
        if keyword.arg is not None:
            keywords[keyword.arg] = value
        elif isinstance(value, DictValue):
            keywords.update({k: v for k, v in value.items.items() if isinstance(k, str)})
    if isinstance(callee, Function) and m.run == 1:
        m.handed = handed(m, callee, node, env)
    return call(m, callee, args, keywords, node)


def _super(m: Interpreter, node: ast.Call, env: Env) -> Value:
    frame_env: Env | None = env
    while frame_env is not None and (frame_env.function is None or frame_env.function.owner is None):
        frame_env = frame_env.parent
    if (
        frame_env is None
        or frame_env.receiver is None
        or frame_env.function is None
        or frame_env.function.owner is None
    ):
        return Unknown("super()")
    return SuperValue(frame_env.receiver, frame_env.function.owner)


def call(m: Interpreter, callee: Value, args: list[Value], keywords: dict[str, Value], node: ast.AST) -> Value:
    """The value of ``callee(*args, **keywords)``, with its effects on cells and storages."""
    m.tick()
    if isinstance(callee, Function):
        return enter(m, callee, args, keywords, node)
    if isinstance(callee, Partial):
        return call(m, callee.function, [*callee.args, *args], {**callee.keywords, **keywords}, node)
    if isinstance(callee, ClassValue):
        return instantiate(m, callee.info, args, keywords, node)
    if isinstance(callee, BoundMethod):
        return _bound(m, callee, args, keywords, node)
    if isinstance(callee, External):
        return call_outside(m, callee.label, args, keywords, node)
    if isinstance(callee, Obj):
        return _call_object(m, callee, args, keywords, node)
    if isinstance(callee, Unknown):
        return _unknown(m, callee, args, keywords, node)
    return Unknown("call")


def _call_object(m: Interpreter, callee: Obj, args: list[Value], keywords: dict[str, Value], node: ast.AST) -> Value:
    if callee.cls is not None:
        for name in ("__call__", "forward"):
            method = m.index.method(callee.cls, name)
            if method is not None:
                result = enter(m, Function(method, None, callee), args, keywords, node)
                if isinstance(result, Tensor) and _has_weight(m, callee, callee.cls) and result not in args:
                    result.certain = True  # it is computed with the module's own weight, and so is not what was given
                return result
    return summarise(m, callee.label, args, keywords, node)


def _has_weight(m: Interpreter, callee: Obj, cls: ClassInfo) -> bool:
    return callee.is_module and initial.is_written(m, cls, "weight")


def _unknown(m: Interpreter, callee: Unknown, args: list[Value], keywords: dict[str, Value], node: ast.AST) -> Value:
    bound = m.bounds.get(callee.label)
    if bound is not None:
        cls = chosen_class(m, callee, bound, m.frame.info.module, node)
        if isinstance(cls, ClassValue):
            return instantiate(m, cls.info, args, keywords, node)
        made = Obj(f"{callee.label}()", bound, is_module=m.index.is_module(bound), exact=False, born=max(m.run, 1))
        m.keep.append(made)
        return made
    obj = callee.home[0] if callee.home else None
    name = callee.home[1] if callee.home else callee.label.rpartition(".")[2]
    if obj is not None and name in ("keys", "values", "items") and (found := elements.listed(m, obj, name)) is not None:
        return found
    if obj is not None and obj.is_module and name in initial.MODULE_METHODS:
        return _bound(m, BoundMethod(obj, name), args, keywords, node)
    return summarise(m, callee.label, args, keywords, node)


def _bound(m: Interpreter, callee: BoundMethod, args: list[Value], keywords: dict[str, Value], node: ast.AST) -> Value:
    receiver = callee.receiver
    if isinstance(receiver, Unknown):
        if receiver.label == "super()":
            return (
                NOTHING
                if callee.name in ("__init__", *POST_LOAD, "load_weights", "__setattr__")
                else Unknown(f"super().{callee.name}()")
            )
        tensor = attributes.as_tensor(m, receiver) if _called_as_tensor(receiver, callee.name, args) else None
        if tensor is not None:
            return tensors.method(m, tensor, callee.name, args, keywords, node)
        return summarise(m, f"{receiver.label}.{callee.name}", args, keywords, node)
    if isinstance(receiver, Tensor):
        if (where := layout.place(receiver, callee.name)) is not None:
            return where
        return tensors.method(m, receiver, callee.name, args, keywords, node)
    if isinstance(receiver, Obj):
        return builtin_calls.module_method(m, receiver, callee.name, args, keywords, node)
    return builtin_calls.method(m, receiver, callee.name, args, keywords, node)


def _called_as_tensor(receiver: Unknown, name: str, args: list[Value]) -> bool:
    if receiver.tensor is not None:
        return True
    if (
        name in ("split", "index", "format", "count")
        and args
        and isinstance(args[0], Const)
        and isinstance(args[0].value, str)
    ):
        return False
    return (
        name in tensors.AMBIGUOUS
        and receiver.home is not None
        and name not in ("size", "log", "type", "add", "register_hook", "names", "mode", "dim", "alias", "real")
    )


# ---- entering


def enter(m: Interpreter, function: Function, args: list[Value], keywords: dict[str, Value], node: ast.AST) -> Value:
    """Run a function of the tree. Recursion and great depth are cut: then the result is summarised."""
    info = function.info
    decided_by, m.handed = m.handed, None
    if m.index.declared:
        known = declared(m, f"{info.module.name}.{info.qualified}", args, keywords)
        if known is not None:
            return known
    if function.receiver is not None and not info.is_static:
        args = [function.receiver, *args]
    skipped = _skips(m, function, info, args, keywords, node)
    if skipped is not None:
        return skipped
    cache = _cache_key(info, args, keywords)
    if cache is not None and cache in m.cached:
        m.oracle.consulted.extend(m.decided_cached[cache])
        return m.cached[cache]
    pure = _pure_key(m, function, info, args, keywords)
    if pure is not None and pure in m.index.results:
        return copied_constant(m.index.results[pure])
    made = function.receiver
    if m.frames and info.name in POST_LOAD and isinstance(made, Obj) and made.born and made.cls is not None:
        bound = m.bounded.get(id(made.cls.node))
        if bound is not None:
            _calls_hook_below(m, made, bound)
    if m.frames and (number := m.index.roots.get(id(info.node))) is not None:
        receiver = function.receiver
        m.entered.add((number, isinstance(receiver, Obj) and receiver.born == m.run))
    asked = len(m.oracle.consulted)
    env = Env(info.module, info, function.env)
    env.receiver = function.receiver
    if decided_by is not None:
        env.hangs_on.update(decided_by)
    transparent = info.name in _TRANSPARENT
    frame = Frame(
        info,
        env,
        node if not m.frames else info.node,
        transparent,
        _dialect_of(m, info) if transparent else None,
        frozenset(keywords),
    )
    _bind_parameters(m, info, env, args, keywords, frame)
    if frame.rejected:
        return NOTHING  # the call raises; what comes behind it is looked at all the same
    if m.wanted is not None and m.wanted[0] == id(node):
        frame.wanted = m.wanted[1]
    m.frames.append(frame)
    m.inside_helper += transparent
    rank, m.oracle.rank = m.oracle.rank, len(m.frames) + (0 if info.binds else FAR)
    try:
        value = _run(m, info, env)
    except Raised:
        if not m.tolerant or len(m.frames) < 2 or (m.run != 1 and (id(node), id(info.node)) not in m.failing):
            raise
        m.failing.add((id(node), id(info.node)))
        value = Unknown(f"{info.qualified}@{m.place(node)}")
    finally:
        m.frames.pop()
        m.inside_helper -= transparent
        m.oracle.rank = rank
    if (
        isinstance(value, Unknown)
        and value.tensor is None
        and not isinstance(info.node, ast.Lambda)
        and info.node.returns is not None
    ):
        value = _by_annotation(m, info, value, args, keywords)
    if cache is not None:
        m.cached[cache], m.decided_cached[cache] = value, tuple(dict.fromkeys(m.oracle.consulted[asked:]))
    if pure is not None and len(m.oracle.consulted) == asked and _is_constant(value):
        m.index.results[pure] = copied_constant(value)
    return value


def _dialect_of(m: Interpreter, info: FunctionInfo) -> Dialect:
    known = m.index.helpers.get(info)
    if known is None:
        known = m.index.helpers[info] = classify(info)
    return known


def _pure_key(
    m: Interpreter, function: Function, info: FunctionInfo, args: list[Value], keywords: dict[str, Value]
) -> Hashable | None:
    """A key under which the result holds for every execution: only constants go in, and nothing is bound inside."""
    if (
        info.binds
        or function.env is not None
        or info.globals
        or not all(isinstance(v, Const) for v in (*args, *keywords.values()))
    ):
        return None
    try:
        key = (
            id(info.node),
            tuple(repr(_constant_of(a)) for a in args),
            tuple(sorted((k, repr(_constant_of(v))) for k, v in keywords.items())),
        )
        hash(key)
    except TypeError:
        return None
    return key


def _constant_of(value: Value) -> object:
    return value.value if isinstance(value, Const) else None


def _is_constant(value: Value) -> bool:
    return isinstance(value, Const) or (
        isinstance(value, ListValue) and value.closed and all(_is_constant(item) for item in value.items)
    )


def copied_constant(value: Value) -> Value:
    """A list of its own for every caller; constants are shared."""
    return ListValue([copied_constant(item) for item in value.items]) if isinstance(value, ListValue) else value


def _calls_hook_below(m: Interpreter, made: Obj, bound: ClassInfo) -> None:
    """The hook of an object of some class below the bound is called, which this run has made, or the first one."""
    if made.born == m.run:
        m.new_below.add(bound.qualified)
    else:
        m.kept_below.update((bound.qualified, module) for module in m.choosers.get(bound.qualified, ()))


def _skips(
    m: Interpreter, function: Function, info: FunctionInfo, args: list[Value], keywords: dict[str, Value], node: ast.AST
) -> Value | None:
    receiver = function.receiver
    if len(m.frames) >= MAX_DEPTH or [f.info for f in m.frames].count(info) > 1:
        m.hit_depth = m.hit_depth or len(m.frames) >= MAX_DEPTH
        return summarise(m, info.qualified, args, keywords, node)
    if m.frames and info.name in POST_LOAD and isinstance(receiver, Obj) and not receiver.exact:
        if receiver.born and receiver.cls is not None:
            _calls_hook_below(m, receiver, receiver.cls)
        return NOTHING  # only a bound of the receiver's class is known; each class's own hook is a root of its own
    if isinstance(info.node, ast.Lambda):
        return None
    if m.frames and info.name.startswith(_SUPPORT) and not info.binds:  # configuration decides
        inner = ",".join(label_of(a) for a in args)
        return (
            Unknown(f"{info.qualified}({inner})") if is_stable(inner) else Unknown(f"{info.qualified}@{m.place(node)}")
        )
    if info.is_abstract:
        return _by_annotation(
            m, info, Unknown(f"{info.qualified}({','.join(label_of(a) for a in args[1:])})"), args, keywords
        )
    return None


def _cache_key(info: FunctionInfo, args: list[Value], keywords: dict[str, Value]) -> Hashable | None:
    if not info.is_cached:
        return None
    return (
        id(info.node),
        tuple(_identity(a) for a in args),
        tuple(sorted((k, _identity(v)) for k, v in keywords.items())),
    )


def _identity(value: Value) -> str:
    return f"#{id(value)}" if isinstance(value, (Obj, Tensor)) else label_of(value)


def _run(m: Interpreter, info: FunctionInfo, env: Env) -> Value:
    if isinstance(info.node, ast.Lambda):
        m.frame.statement = info.node.body
        return expressions.evaluate(m, info.node.body, env)
    value: Value = NOTHING
    try:
        statements.execute(m, info.node.body, env)
    except Returned as returned:
        value = returned.value
    if info.is_generator:
        return env.variables.get("<yielded>", ListValue([]))
    return value


def _bind_parameters(
    m: Interpreter, info: FunctionInfo, env: Env, args: list[Value], keywords: dict[str, Value], frame: Frame
) -> None:
    spec = info.node.args
    names = info.positional
    variables = env.variables
    variables.update(zip(names, args, strict=False))
    left = dict(keywords)
    for name in names[len(args) :]:
        if name in left:
            variables[name] = left.pop(name)
        else:
            default = info.defaults.get(name)
            variables[name] = _default(m, default, info) if default is not None else Unknown(f"argument {name}")
    for name, default in info.keyword_only:
        if name in left:
            variables[name] = left.pop(name)
        else:
            variables[name] = _default(m, default, info) if default is not None else Unknown(f"argument {name}")
    for name, bound in info.class_parameters.items():
        given = variables.get(name)
        if isinstance(given, Obj) and given.cls is None and given.home is not None:
            given = Unknown(given.label, given.home)  # it was asked something, and is a class all the same
        if isinstance(given, Unknown) and given.tensor is None and m.frames:
            variables[name] = bounded_class(m, given, bound, info.module, info.node)
    if left:
        for name in names:
            left.pop(name, None)
    if spec.vararg is not None:
        env.variables[spec.vararg.arg] = ListValue(args[len(names) :])
    if spec.kwarg is not None:
        env.variables[spec.kwarg.arg] = DictValue(dict(left.items()))
    elif left and frame.transparent and m.frames:
        frame.rejected = True
        site = m.site(Binding.REPLACE, Const(sorted(left)[0]), None)
        m.rejected.append(replace(site, helper=frame.helper, prefer_copy="prefer_copy" in left))


def _default(m: Interpreter, node: ast.expr, info: FunctionInfo) -> Value:
    if isinstance(node, ast.Constant):
        return NOTHING if node.value is None else Const(node.value)
    m.frames.append(Frame(info, Env(info.module), node)) if not m.frames else None
    return expressions.evaluate(m, node, Env(info.module))


def _by_annotation(
    m: Interpreter, info: FunctionInfo, value: Unknown, args: list[Value], keywords: dict[str, Value]
) -> Value:
    """What a function returns, by its annotation, where following it did not tell."""
    returns = info.node.returns if not isinstance(info.node, ast.Lambda) else None
    if returns is None:
        return value
    text = text_of(returns)
    every = [*args, *keywords.values()]
    if value.home is not None and "Tensor" in text:  # it was followed, and gave back an attribute as it is
        return (attributes.as_tensor(m, value) or value) if text in ("torch.Tensor", "Tensor") else value
    if text in ("torch.Tensor", "Tensor"):
        return m.fresh(info.qualified, every)
    if text.startswith(("tuple[torch.Tensor", "Tuple[torch.Tensor", "tuple[Tensor")):
        return ListValue(
            [m.fresh(f"{info.qualified}{i}", every) for i in range(text.count("Tensor"))], closed="..." not in text
        )
    found = annotated(m, returns, info.module, value.label, info.node)
    if isinstance(found, Tensor):
        return m.fresh(info.qualified, every)
    if isinstance(found, Obj):
        m.named.setdefault(found.label, found)
        known = m.named[found.label]
        return known if isinstance(known, Obj) else found
    return found


# ---- constructors


def instantiate(m: Interpreter, info: ClassInfo, args: list[Value], keywords: dict[str, Value], node: ast.AST) -> Value:
    """A new object of a class of the tree; its constructor runs."""
    if m.index.is_parameter_class(info):
        return parameter_of(m, args[0] if args else keywords.get("data"), info.name, keywords)
    if m.index.is_enumeration(info):
        return Unknown(f"{info.name}({','.join(label_of(a) for a in args)})")
    label = f"{info.name}()"
    obj = Obj(label, info, is_module=m.index.is_module(info), born=max(m.run, 1))
    m.keep.append(obj)
    method = m.index.method(info, "__init__")
    if method is not None:
        enter(m, Function(method, None, obj), args, keywords, node)
        return obj
    _dataclass_fields(m, info, obj, args, keywords, node)
    post = m.index.method(info, "__post_init__")
    if post is not None:
        enter(m, Function(post, None, obj), [], {}, node)
    return obj


def _dataclass_fields(
    m: Interpreter, info: ClassInfo, obj: Obj, args: list[Value], keywords: dict[str, Value], node: ast.AST
) -> None:
    names = [name for cls in reversed(m.index.mro(info)) for name in cls.annotations]
    for name, value in [*zip(names, args, strict=False), *keywords.items()]:
        attributes.write(m, obj, name, value)
    for name in names:
        if name not in obj.attributes:
            made = _field_default(m, info, name, node)
            obj.attributes[name] = made if made is not None else attributes.read(m, ClassValue(info), name, node)


def _field_default(m: Interpreter, info: ClassInfo, name: str, node: ast.AST) -> Value | None:
    """``name: T = field(default_factory=f)``: what ``f()`` gives, anew for each object."""
    home = next((cls for cls in m.index.mro(info) if name in cls.attributes), None)
    call_node = home.attributes[name] if home is not None else None
    if home is None or not isinstance(call_node, ast.Call) or not m.frames:
        return None
    for keyword in call_node.keywords:
        if keyword.arg in ("default_factory", "default"):
            value = expressions.evaluate(m, keyword.value, Env(home.module))
            return call(m, value, [], {}, node) if keyword.arg == "default_factory" else value
    return None
