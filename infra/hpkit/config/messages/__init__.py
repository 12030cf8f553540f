"""Describes wrong values, and suggests what to write instead."""
