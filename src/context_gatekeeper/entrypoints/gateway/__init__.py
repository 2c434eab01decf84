"""The HTTP side of ``cgk serve``: takes requests, asks the planner, relays bytes. Needs the extra ``gateway``."""
