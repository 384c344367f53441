"""What a program's collective calls were: recorded, read, aligned over ranks, and judged."""

from stagegen.recording.model import Recording
from stagegen.recording.patterns import ArrivalPattern, arrival_patterns
from stagegen.recording.read import read

__all__ = ["ArrivalPattern", "Recording", "arrival_patterns", "read"]
