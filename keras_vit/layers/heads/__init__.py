"""Pooling and heads: from tokens to outputs."""
