"""Rules over a plan: what AWS, Kueue or Karpenter would reject or quietly do wrong later."""

from hpkit.checks.engine import RULES, check, fold, rule_by_id, unevaluated
from hpkit.checks.rule import Finding, Summary, summarize

__all__ = ["RULES", "Finding", "Summary", "check", "fold", "rule_by_id", "summarize", "unevaluated"]
