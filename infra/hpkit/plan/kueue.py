"""Kueue's own configuration file, edited where it must be and left as it is elsewhere."""

import re

__all__ = ["with_feature_gate"]

_BLOCK = re.compile(r"^featureGates:[ \t]*(?:\{\}|null|~)?[ \t]*$", re.MULTILINE)
_INLINE = re.compile(r"^featureGates:", re.MULTILINE)


def with_feature_gate(text: str, gate: str, *, enabled: bool) -> str:
    """Return Kueue's configuration with one feature gate set; the same text again when it is set already.

    Raises ValueError when the file's gates are written in one line, which the add-on's file never is.
    """
    value = "true" if enabled else "false"
    block = _BLOCK.search(text)
    if block is None:
        if _INLINE.search(text):
            raise ValueError("featureGates stands in one line; write it as a block")
        return f"{text.rstrip()}\nfeatureGates:\n  {gate}: {value}\n"
    head, tail = text[: block.start()], text[block.end() :]
    line = re.compile(rf"^(?P<name>[ \t]+{re.escape(gate)}:)[ \t]*\S+", re.MULTILINE)
    # Gates end where the next top-level key begins.
    end = re.search(r"^\S", tail, re.MULTILINE)
    gates, rest = (tail, "") if end is None else (tail[: end.start()], tail[end.start() :])
    gates = line.sub(rf"\g<name> {value}", gates) if line.search(gates) else f"\n  {gate}: {value}{gates}"
    return f"{head}featureGates:{gates}{rest}"
