"""One file a rule; see docs/writing-a-rule.md."""
