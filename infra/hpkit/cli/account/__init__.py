"""Commands that read or change an AWS account: `hpkit aws`."""
