"""Compares what a stack needs from an AWS account with what the account has.

`calls` lists the API calls, `needs` what the program will use, and `evaluate` compares both, without side effects. Only
`aws_client` and `kubernetes_client` make calls.
"""
