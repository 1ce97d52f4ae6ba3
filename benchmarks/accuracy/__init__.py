"""How right the linter is on released trees, by labels given after reading the code.

``python -m benchmarks.accuracy`` recomputes everything from ``labels/*.json``; ``labels/README.md`` says what is in them.
"""
