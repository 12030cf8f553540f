#!/bin/bash
# Runs once on every new HyperPod node, before it joins the EKS cluster. A failure here fails the node.
#
# Fetches the script that the organization file names with its SHA-256, and runs it only if it is that one. The AWS CLI
# is on the image, and has the rights of the group's execution role.
set -euo pipefail

uri=@URI@
sha256=@SHA256@

log=/var/log/provision/provisioning.log
mkdir -p "$(dirname "$log")"
exec >>"$log" 2>&1

say() { echo "$(date --iso-8601=seconds) on_create: $1"; }

# Nobody else can write to the folder between the comparison and the run.
folder="$(mktemp -d)"
script="$folder/$(basename "$uri")"
aws s3 cp --only-show-errors "$uri" "$script"
found="$(sha256sum "$script" | cut -d ' ' -f 1)"
if [[ "$found" != "$sha256" ]]; then
  say "refused: $uri has the SHA-256 $found, and the organization file says $sha256"
  exit 1
fi
chmod 700 "$script"
say "begin of $uri"
cd "$folder"
"$script"
say "end of $uri"
