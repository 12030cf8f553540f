"""`aws SERVICE OPERATION --option value…` for pages: sends the AWS CLI's requests without an installed CLI.

It doesn't accept JSON, files or queries. As in the CLI, each word of a list is a value.
"""

import json
import sys

import boto3
from botocore import xform_name

__all__ = ["command_in"]


def command_in(folder):
    """Write the command `aws` into a folder that is added to PATH."""
    file = folder / "aws"
    file.write_text(f'#!/bin/sh\nexec {sys.executable} {__file__} "$@"\n', encoding="utf-8")
    file.chmod(0o755)
    return folder


def _run(service, operation, *options):
    client = boto3.client(service)
    model = client.meta.service_model
    (name,) = (each for each in model.operation_names if xform_name(each, "-") == operation)
    members = model.operation_model(name).input_shape.members
    shapes = {f"--{xform_name(key, '-')}": (key, shape.type_name) for key, shape in members.items()}
    given, key, kind = {}, "", ""
    for word in options:
        if word.startswith("--"):
            key, kind = shapes[word]
        elif kind == "list":
            given.setdefault(key, []).append(word)
        else:
            given[key] = word
    response = getattr(client, xform_name(name))(**given)
    print(json.dumps({key: part for key, part in response.items() if key != "ResponseMetadata"}, default=str))


if __name__ == "__main__":
    _run(*sys.argv[1:])
