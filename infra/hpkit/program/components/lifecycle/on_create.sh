#!/bin/bash
# Runs once on every new HyperPod node, before it joins the EKS cluster. A failure here fails the node.
#
# HyperPod's images come with driver, EFA, containerd and kubelet set up, so there is nothing that must be done.
# What a site needs on every node (a proxy, a certificate, a mount) goes between the two log lines; a group can
# name a script of its own with `lifecycleScript`.
set -euo pipefail

log=/var/log/provision/provisioning.log
mkdir -p "$(dirname "$log")"
exec >>"$log" 2>&1

echo "$(date --iso-8601=seconds) on_create: begin on $(hostname)"
echo "$(date --iso-8601=seconds) on_create: end"
