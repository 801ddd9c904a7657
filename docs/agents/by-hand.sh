#!/bin/sh
# One agent, by hand, on a load machine.
#
#   tls://broker:4222         the broker, by a name in its certificate (docs/agents.md)
#   --broker-ca ca.pem        the authority that signed its certificate; leave it out if the system trusts it
#   --creds rack7.creds       the agent's login, readable only by you; or --nkey rack7.nk
#   --target …                the only server it may connect to, whatever a plan says; may be given several times
#   --lanes 8                 load threads (default: one for each processor)
#   --name rack7              its name in reports (default: the host's name)
#
# It takes part in one run after the other. Ctrl-C ends it, and the current run too.
set -eu
umask 077
exec tithe agent --join tls://broker:4222 --broker-ca ca.pem --creds rack7.creds \
  --target db.example.com:5432 --lanes 8 --name rack7
