"""How many injected hazards the linter finds: clean hooks of released trees, mutated one statement at a time.

``python -m benchmarks.mutation`` makes every mutant anew from the release's own files; nothing of these is kept here.
A mutant is a hook, a place that the hook reaches, and an operator. It is killed when the linter, silent about the hook as it
was released, reports the injected cell, through the injected statement, under a code that says what was injected.
"""
