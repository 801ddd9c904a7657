#!/bin/sh
# One agent, by hand, on a load machine.
#
#   tls://broker:4222         the broker, by a name that its certificate bears (docs/agents.md)
#   --broker-ca ca.pem        the authority that signed its certificate; leave it out where the system trusts it
#   --creds rack7.creds       what it is let in by, readable by you alone; or --nkey rack7.nk
#   --target …                what it may connect to, and nothing else, whatever a plan says; may be given several times
#   --lanes 8                 load threads; one for each processor where it is left out
#   --name rack7              how it is called in reports; the host's name where it is left out
#
# It serves one run after the other until Ctrl-C, which ends the run that it has a part in.
set -eu
umask 077
exec tithe agent --join tls://broker:4222 --broker-ca ca.pem --creds rack7.creds \
  --target db.example.com:5432 --lanes 8 --name rack7
