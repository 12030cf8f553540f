"""Amazon ECR: moto."""

from hpkit_local.aws.service import Service, declare

declare(
    Service(
        "ecr",
        rejects_with="InvalidParameterException",
        source="https://docs.aws.amazon.com/AmazonECR/latest/APIReference/API_CreateRepository.html",
        moto="ecr",
    )
)
