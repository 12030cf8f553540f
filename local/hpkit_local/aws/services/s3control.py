"""Amazon S3 Control: tags of buckets, which the released aws plugin reads and changes here; moto keeps them in S3.

Requests aren't checked: the API model's pattern of an ARN excludes buckets, which the service accepts.
"""

from hpkit_local.aws.service import Service, declare

declare(Service("s3control", moto="s3", in_moto_globally=True))
