"""Pictures of schedules: phases as a space–time chart, rings and trees on the switch tree."""

from stagegen.report.pictures.draw import FORMATS, draw

__all__ = ["FORMATS", "draw"]
