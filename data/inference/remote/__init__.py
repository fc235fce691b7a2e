"""Models that OpenAI-compatible servers run."""
