"""The network: VPC, one private node subnet a zone, the way out or none, endpoints, the nodes' security group."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pulumi
import pulumi_aws as aws

from hpkit.catalog import is_zone_id
from hpkit.plan.endpoint import control_plane_cidr, control_plane_subnets, public_cidr
from hpkit.plan.model import Plan, ZonePlan
from hpkit.plan.protected import kept
from hpkit.program.components.common.base import Component, DeployContext

__all__ = ["Network"]

_ANYWHERE = "0.0.0.0/0"


def _name_and_id(zone: str) -> tuple[str | None, str | None]:
    """Return the name or the ID of a zone, whichever the file has, and None in place of the other."""
    return (None, zone) if is_zone_id(zone) else (zone, None)


class Network(Component):
    """The network of one environment, created or existing.

    - vpc_id: the VPC.
    - control_plane_subnet_ids: in two zones.
    - node_subnet_ids: by zone.
    - security_group_ids: the nodes' security groups.
    - connectivity: what nodes, control plane and AWS need to reach each other (rules, routes, gateways, endpoints).
      It's created before anything in the cluster, and deleted after all of it.
    - ranges: the VPC's address ranges except the first. EKS can take five hours to recognize one that is added later
      (Amazon EKS user guide, networking requirements).
    - kept: ID of the VPC, if it's created, by its name in `allowReplace`.
    """

    vpc_id: pulumi.Output[str]
    control_plane_subnet_ids: Sequence[pulumi.Output[str]]
    node_subnet_ids: Mapping[str, pulumi.Output[str]]
    security_group_ids: Sequence[pulumi.Output[str]]
    connectivity: Sequence[pulumi.Resource]
    ranges: Sequence[pulumi.Resource]
    kept: Mapping[str, pulumi.Output[str]]

    def __init__(
        self,
        name: str,
        plan: Plan,
        context: DeployContext,
        *,
        guard: Sequence[pulumi.Resource],
        opts: pulumi.ResourceOptions,
    ) -> None:
        super().__init__(name, opts=opts)
        self._plan = plan
        self._context = context
        existing = plan.spec.network.existing
        if existing is not None:
            self.vpc_id = pulumi.Output.from_input(existing.vpc_id)
            self.node_subnet_ids = {
                zone: pulumi.Output.from_input(subnet) for zone, subnet in sorted(existing.subnets.items())
            }
            self.control_plane_subnet_ids = [pulumi.Output.from_input(each) for each in control_plane_subnets(existing)]
            self.security_group_ids = [pulumi.Output.from_input(each) for each in existing.security_group_ids]
            self.connectivity, self.ranges, self.kept = [], [], {}
        else:
            self._build(plan.spec.network.vpc_cidr or "", guard)
        self.register_outputs({"vpcId": self.vpc_id, "nodeSubnetIds": self.node_subnet_ids})

    def _build(self, vpc_cidr: str, guard: Sequence[pulumi.Resource]) -> None:
        vpc = aws.ec2.Vpc(
            "vpc",
            cidr_block=vpc_cidr,
            enable_dns_hostnames=True,
            enable_dns_support=True,
            tags={"Name": self._plan.stack},
            opts=self.child(after=guard, protect=kept(self._plan, "vpc")),
        )
        self.vpc_id, self.kept = vpc.id, {"vpc": vpc.id}
        self.control_plane_subnet_ids = [
            self._control_plane_subnet(vpc_cidr, zone) for zone in self._context.control_plane_zones
        ]
        tables, subnets = {}, {}
        ranges = {zone.availability_zone: self._range(zone) for zone in self._plan.network.zones if not zone.inside_vpc}
        self.ranges = list(ranges.values())
        associations: list[pulumi.Resource] = []
        for zone in self._plan.network.zones:
            name = zone.availability_zone
            after = [ranges[name]] if name in ranges else []
            subnets[name], tables[name], association = self._node_subnet(zone, after=after)
            associations.append(association)
        self.node_subnet_ids = {zone: subnet.id for zone, subnet in subnets.items()}
        nodes, rules = self._nodes_group()
        self.security_group_ids = [nodes.id]
        routes = self._routes(vpc_cidr, tables)
        self.connectivity = [*associations, *rules, *routes, *self._endpoints(tables, nodes)]

    def _control_plane_subnet(self, vpc_cidr: str, zone: str) -> pulumi.Output[str]:
        return aws.ec2.Subnet(
            f"control-plane-{zone}",
            vpc_id=self.vpc_id,
            availability_zone=zone,
            cidr_block=control_plane_cidr(vpc_cidr, zone),
            tags={"Name": f"{self._plan.stack}-control-plane-{zone}"},
            opts=self.child(),
        ).id

    def _range(self, zone: ZonePlan) -> pulumi.Resource:
        return aws.ec2.VpcIpv4CidrBlockAssociation(
            f"nodes-{zone.availability_zone}", vpc_id=self.vpc_id, cidr_block=zone.node_cidr or "", opts=self.child()
        )

    def _node_subnet(
        self, zone: ZonePlan, *, after: Sequence[pulumi.Resource]
    ) -> tuple[aws.ec2.Subnet, aws.ec2.RouteTable, aws.ec2.RouteTableAssociation]:
        name = f"nodes-{zone.availability_zone}"
        tags = {"Name": f"{self._plan.stack}-{name}"}
        cidr = zone.node_cidr or ""
        zone_name, zone_id = _name_and_id(zone.availability_zone)
        subnet = aws.ec2.Subnet(
            name,
            vpc_id=self.vpc_id,
            availability_zone=zone_name,
            availability_zone_id=zone_id,
            cidr_block=cidr,
            tags={**tags, "kubernetes.io/role/internal-elb": "1"},
            opts=self.child(after=after),
        )
        table = aws.ec2.RouteTable(name, vpc_id=self.vpc_id, tags=tags, opts=self.child())
        association = aws.ec2.RouteTableAssociation(
            name, subnet_id=subnet.id, route_table_id=table.id, opts=self.child()
        )
        return subnet, table, association

    def _nodes_group(self) -> tuple[aws.ec2.SecurityGroup, list[pulumi.Resource]]:
        nodes = aws.ec2.SecurityGroup(
            "nodes",
            name=f"{self._plan.stack}-nodes",
            description="HyperPod nodes and interfaces of the EKS control plane",
            vpc_id=self.vpc_id,
            tags={"Name": f"{self._plan.stack}-nodes"},
            opts=self.child(),
        )
        # EFA needs separate rules that allow all traffic from and to the group itself.
        rules: list[pulumi.Resource] = [
            aws.vpc.SecurityGroupIngressRule(
                "nodes-from-nodes",
                security_group_id=nodes.id,
                referenced_security_group_id=nodes.id,
                ip_protocol="-1",
                opts=self.child(),
            ),
            aws.vpc.SecurityGroupEgressRule(
                "nodes-to-nodes",
                security_group_id=nodes.id,
                referenced_security_group_id=nodes.id,
                ip_protocol="-1",
                opts=self.child(),
            ),
            aws.vpc.SecurityGroupEgressRule(
                "nodes-to-anywhere",
                security_group_id=nodes.id,
                cidr_ipv4=_ANYWHERE,
                ip_protocol="-1",
                opts=self.child(),
            ),
        ]
        return nodes, rules

    def _routes(self, vpc_cidr: str, tables: Mapping[str, aws.ec2.RouteTable]) -> list[pulumi.Resource]:
        if not self._plan.network.nat_gateways:
            return []
        gateway = aws.ec2.InternetGateway(
            "internet", vpc_id=self.vpc_id, tags={"Name": self._plan.stack}, opts=self.child()
        )
        public = aws.ec2.RouteTable(
            "public", vpc_id=self.vpc_id, tags={"Name": f"{self._plan.stack}-public"}, opts=self.child()
        )
        out = aws.ec2.Route(
            "public",
            route_table_id=public.id,
            destination_cidr_block=_ANYWHERE,
            gateway_id=gateway.id,
            opts=self.child(),
        )
        single = self._plan.spec.network.nat_gateways == "Single"
        # A single gateway is in a zone that doesn't depend on the nodes' zones, so that it never moves.
        homes = dict.fromkeys(tables, self._context.zones[0]) if single else {zone: zone for zone in tables}
        gateways = {
            home: self._nat(vpc_cidr, home, single=single, public=public, after=[out])
            for home in sorted(set(homes.values()))
        }
        return [
            aws.ec2.Route(
                f"nodes-{zone}",
                route_table_id=table.id,
                destination_cidr_block=_ANYWHERE,
                nat_gateway_id=gateways[homes[zone]].id,
                opts=self.child(),
            )
            for zone, table in tables.items()
        ]

    def _nat(
        self, vpc_cidr: str, zone: str, *, single: bool, public: aws.ec2.RouteTable, after: Sequence[pulumi.Resource]
    ) -> aws.ec2.NatGateway:
        name = "nat" if single else f"nat-{zone}"
        tags = {"Name": f"{self._plan.stack}-{name}"}
        zone_name, zone_id = _name_and_id(zone)
        subnet = aws.ec2.Subnet(
            name,
            vpc_id=self.vpc_id,
            availability_zone=zone_name,
            availability_zone_id=zone_id,
            cidr_block=public_cidr(vpc_cidr, None if single else zone),
            tags=tags,
            opts=self.child(delete_before_replace=single or None),  # it has the same addresses in each zone
        )
        association = aws.ec2.RouteTableAssociation(
            name, subnet_id=subnet.id, route_table_id=public.id, opts=self.child()
        )
        address = aws.ec2.Eip(name, domain="vpc", tags=tags, opts=self.child())
        return aws.ec2.NatGateway(
            name,
            subnet_id=subnet.id,
            allocation_id=address.id,
            tags=tags,
            # The address belongs to the old gateway until that is deleted.
            opts=self.child(after=[association, *after], delete_before_replace=True),
        )

    def _endpoints(
        self, tables: Mapping[str, aws.ec2.RouteTable], nodes: aws.ec2.SecurityGroup
    ) -> list[pulumi.Resource]:
        services = self._plan.network.endpoints
        endpoints: list[pulumi.Resource] = []
        if "s3" in services:
            endpoints.append(
                aws.ec2.VpcEndpoint(
                    "endpoint-s3",
                    vpc_id=self.vpc_id,
                    service_name=self._service("s3"),
                    vpc_endpoint_type="Gateway",
                    route_table_ids=[table.id for table in tables.values()],
                    tags={"Name": f"{self._plan.stack}-s3"},
                    opts=self.child(),
                )
            )
        private = [service for service in services if service != "s3"]
        if private:
            group, rule = self._endpoint_group(nodes)
            endpoints += [rule, *(self._interface_endpoint(service, group) for service in private)]
        return endpoints

    def _endpoint_group(self, nodes: aws.ec2.SecurityGroup) -> tuple[aws.ec2.SecurityGroup, pulumi.Resource]:
        group = aws.ec2.SecurityGroup(
            "endpoints",
            name=f"{self._plan.stack}-endpoints",
            description="Endpoints of AWS services, from nodes",
            vpc_id=self.vpc_id,
            tags={"Name": f"{self._plan.stack}-endpoints"},
            opts=self.child(),
        )
        rule = aws.vpc.SecurityGroupIngressRule(
            "endpoints-from-nodes",
            security_group_id=group.id,
            referenced_security_group_id=nodes.id,
            ip_protocol="tcp",
            from_port=443,
            to_port=443,
            opts=self.child(),
        )
        return group, rule

    def _interface_endpoint(self, service: str, group: aws.ec2.SecurityGroup) -> aws.ec2.VpcEndpoint:
        return aws.ec2.VpcEndpoint(
            f"endpoint-{service}",
            vpc_id=self.vpc_id,
            service_name=self._service(service),
            vpc_endpoint_type="Interface",
            private_dns_enabled=True,
            subnet_ids=list(self.node_subnet_ids.values()),
            security_group_ids=[group.id],
            tags={"Name": f"{self._plan.stack}-{service}"},
            opts=self.child(),
        )

    def _service(self, service: str) -> str:
        return f"com.amazonaws.{self._plan.spec.region}.{service}"
