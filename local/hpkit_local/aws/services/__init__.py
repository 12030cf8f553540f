"""One folder per AWS service: `hpkit_local.aws.service` tells what each file holds."""
