"""Result → terminal, JSON, page and picture. Reports compute nothing: they draw what a result holds."""

from bystander.report.html import page
from bystander.report.json import dumps
from bystander.report.plot import draw, save
from bystander.report.text import plain, render, render_bound

__all__ = ["draw", "dumps", "page", "plain", "render", "render_bound", "save"]
