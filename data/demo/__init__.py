"""The load of the bug that this scheduler was made for, played on the real engine and measured."""
