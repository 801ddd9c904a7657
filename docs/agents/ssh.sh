#!/bin/bash
# Agents on a list of hosts, over ssh: ssh.sh hosts.txt, one host a line, as DNS or ~/.ssh/config knows it by letters, digits,
# `-` and `_` alone, because it is the agent's name, too. Each has tithe, ca.pem and its own HOST.creds
# (or HOST.nk) in ~/tithe: copied there once, by scp, with mode 600. Nothing secret stands in an argument.
#
# -tt gives each agent a terminal: when this script ends or a connection breaks, the agent is hung up and ends.
# BatchMode asks for no password; ServerAlive notices a host that is gone.
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
