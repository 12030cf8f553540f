"""Commands that read a running cluster: `hpkit cluster` and `hpkit job`."""
