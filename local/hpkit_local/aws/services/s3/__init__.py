"""Amazon S3: moto, with bucket policies that have conditions."""

from hpkit_local.aws.service import Service, declare

declare(
    Service(
        "s3",
        refuses_with="InvalidArgument",
        source="https://docs.aws.amazon.com/AmazonS3/latest/API/ErrorResponses.html",
        moto="s3",
        in_moto_globally=True,
        first_call=("", {}),
    )
)
