"""What a stack needs of an AWS account, and whether the account has it.

`calls` says what to ask, `needs` what the program will use, `evaluate` compares both: all of them pure. Only
`aws_client` and `kubernetes_client` reach out.
"""
