"""AWS Price List: products and their on-demand prices."""

from hpkit_local.aws.service import Service, declare

declare(
    Service(
        "pricing",
        refuses_with="InvalidParameterException",
        source="https://docs.aws.amazon.com/aws-cost-management/latest/APIReference/API_pricing_GetProducts.html",
        scope="GetProducts$",
    )
)
