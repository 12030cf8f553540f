"""What-if: a simulator of Kueue, scenarios, rehearsals, and recommendations."""
