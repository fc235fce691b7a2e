"""Numbers with the word for what is counted."""

from domain.counting import counted as counted
