"""An acceptance run on an account: creates a small platform, uses it, deletes it, and reports what differed."""
