"""Tests a running cluster with small pods and jobs: devices, network, image pulls, volumes and queues."""
