"""What a stack needs of an AWS account, and whether the account has it.

`calls` says what to ask, `rows` judges the answers: both pure. Only `ask` and `kubernetes` reach out.
"""
