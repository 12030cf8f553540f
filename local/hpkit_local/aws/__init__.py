"""The AWS endpoint of the local cloud: one loopback server for every service that hpkit calls.

`services/` has a folder for each service; moto answers for most of them. The modules here are what all services share.
"""
