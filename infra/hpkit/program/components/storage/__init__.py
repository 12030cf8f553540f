"""Buckets, file systems, and local disks."""
