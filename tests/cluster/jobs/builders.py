"""Manifests as text."""

import yaml


def text_of(*documents):
    return yaml.safe_dump_all(documents, sort_keys=False)
