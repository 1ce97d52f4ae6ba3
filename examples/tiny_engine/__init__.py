"""An inference engine in miniature, written to be linted: its post-load hooks hold a dozen rebinding hazards.

It is the tree that `make demo` falls back to without a network, and the one whose fixed hooks are run on real tensors
(`examples/runtime_proof.py`). It needs nothing but torch, and runs on a CPU.
"""
