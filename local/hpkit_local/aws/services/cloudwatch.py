"""Amazon CloudWatch: moto."""

from hpkit_local.aws.service import Service, declare

declare(Service("cloudwatch", moto="cloudwatch", signs_as="monitoring"))
