"""Address checks on the *sources* of a vLLM release: the hooks that only a GPU would run, on a CPU, without vLLM's
binary.

A process of its own imports the tree with a stand-in for its CUDA platform and for its compiled operators, builds one
small layer for each quantisation method, loads it, reloads it through the tree's own layerwise reload, and compares
where every tensor lies. Stand-in operators give results of the right shape and no meaning, so that only addresses are
judged and never numbers.

Importing this package needs no torch: the process that judges is not the one that runs vLLM.
"""
