#!/bin/bash
# Runs once on every new HyperPod node, before it joins the EKS cluster. A failure here fails the node.
#
# Downloads the folder of the script that the organization file names, and runs the script only if the SHA-256 of the
# folder matches. The image contains the AWS CLI, which has the permissions of the group's execution role.
set -euo pipefail

uri=@URI@
sha256=@SHA256@

log=/var/log/provision/provisioning.log
mkdir -p "$(dirname "$log")"
exec >>"$log" 2>&1

say() { echo "$(date --iso-8601=seconds) on_create: $1"; }

# Only this user can write to the folder, so the script can't change between the check and the run.
folder="$(mktemp -d)"
script="./$(basename "$uri")"
cd "$folder"
aws s3 cp --only-show-errors --recursive "${uri%/*}/" .
actual="$(find . -type f -print0 | LC_ALL=C sort -z | xargs -0 sha256sum | sha256sum | cut -d ' ' -f 1)"
if [[ "$actual" != "$sha256" ]]; then
  say "rejected: the folder of $uri has the SHA-256 $actual, but the organization file has $sha256"
  exit 1
fi
chmod 700 "$script"
say "$uri starts"
"$script"
say "$uri ended"
