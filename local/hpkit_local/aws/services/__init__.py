"""One folder per AWS service: `hpkit_local.aws.service` describes each file."""
