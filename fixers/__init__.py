"""One file a fixer, named after its rule; see docs/writing-a-rule.md."""
