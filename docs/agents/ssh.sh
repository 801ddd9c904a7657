#!/bin/bash
# Agents on a list of hosts, over ssh: ssh.sh hosts.txt, one host per line, by its name in DNS or ~/.ssh/config. The
# name has only letters, digits, `-` and `_`, because it is the agent's name, too. Each host has tithe, ca.pem and its
# own HOST.creds (or HOST.nk) in ~/tithe: copy them there once, by scp, with mode 600. No argument contains a secret.
#
# -tt gives each agent a terminal: when this script ends or a connection breaks, the agent gets a hang-up signal and
# ends. BatchMode asks for no password; ServerAlive notices a host that is gone.
set -euo pipefail
hosts=${1:?usage: ssh.sh hosts.txt}
trap 'kill $(jobs -p) 2>/dev/null || true' EXIT
while read -r host; do
  [ -n "$host" ] || continue
  ssh -tt -o BatchMode=yes -o ServerAliveInterval=10 "$host" \
    "cd tithe && exec ./tithe agent --join tls://broker:4222 --broker-ca ca.pem --creds $host.creds \
       --target db.example.com:5432 --name $host" </dev/null 2>&1 | sed "s/^/$host: /" &
done <"$hosts"
wait
