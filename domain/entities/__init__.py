"""Frozen value objects that cross the layers."""
