"""Commands that read an organization file: `init` to `catalog` in `hpkit --help`."""
