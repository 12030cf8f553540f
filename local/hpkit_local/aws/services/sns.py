"""Amazon SNS: moto."""

from hpkit_local.aws.service import Service, declare

declare(Service("sns", moto="sns"))
