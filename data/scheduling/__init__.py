"""The scheduler: a state machine without I/O, its policies, a simulator, and the dispatcher that runs it for real."""
