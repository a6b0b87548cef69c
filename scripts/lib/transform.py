"""Prints template.yaml as SAM transforms it, with the given NAME=VALUE parameters."""

import json
import sys

from samtranslator.translator.transform import transform
from samtranslator.yaml_helper import yaml_parse


class NoManagedPolicies:
    def load(self):
        return {}


def main():
    with open("template.yaml", encoding="utf-8") as file:
        template = yaml_parse(file.read())
    # What `sam package` would write: the transform takes only code that lies in S3.
    template["Resources"]["ChargeFunction"]["Properties"]["CodeUri"] = "s3://bucket/bootstrap.zip"
    parameters = dict(argument.split("=", 1) for argument in sys.argv[1:])
    json.dump(transform(template, parameters, NoManagedPolicies()), sys.stdout, indent=1)


main()
