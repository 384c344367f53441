"""Reports: what was measured and chosen, beside lower bounds. Reads all, decides nothing."""

from stagegen.report.page import render_report
from stagegen.report.rows import ReportRow, report_rows

__all__ = ["ReportRow", "render_report", "report_rows"]
