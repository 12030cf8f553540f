"""Job manifests as text."""

import yaml

__all__ = ["text_of"]


def text_of(*documents):
    return yaml.safe_dump_all(documents, sort_keys=False)
