"""Hypothesis without deadlines: the machine may be busy, and pytest-timeout guards anyway."""

from hypothesis import settings

settings.register_profile("no-deadline", deadline=None)
settings.load_profile("no-deadline")
