#!/bin/bash
# Runs once on every new HyperPod node, before it joins the EKS cluster. A failure here fails the node.
#
# HyperPod's images already contain the driver, EFA, containerd and kubelet, so this script only writes a log.
# Add setup that every node needs, such as a proxy, a certificate or a mount, between the two log lines. To run another
# script in one group, set the group's `lifecycleScript`.
set -euo pipefail

log=/var/log/provision/provisioning.log
mkdir -p "$(dirname "$log")"
exec >>"$log" 2>&1

echo "$(date --iso-8601=seconds) on_create: begin on $(hostname)"
echo "$(date --iso-8601=seconds) on_create: end"
