"""Evaluations: labelled data sets in, figures out (``cgk eval``). They drive the public facade only."""
