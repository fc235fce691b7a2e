"""Ports: what the use cases need, said as protocols that `data` implements."""
