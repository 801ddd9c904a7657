#!/bin/bash
#SBATCH --job-name=tithe-agents
#SBATCH --nodes=8
#SBATCH --ntasks-per-node=1
#SBATCH --exclusive
#SBATCH --time=02:00:00
# Agents on eight nodes: sbatch slurm.sh, or the srun line alone in an allocation of yours. One agent a node, alone on it.
# The name is the node's (letters, digits, `-` and `_`); $HOME/tithe is a folder that all nodes see, with ca.pem and NODE.creds of mode 600.
#
# srun starts tasks some milliseconds apart, which does no harm: a frame begins when all agents are there, at a time that the
# coordinator names. --kill-on-bad-exit=0: an agent that fails does not take the others with it; the run says which is missing.
set -euo pipefail
cd "$HOME/tithe"
srun --ntasks-per-node=1 --kill-on-bad-exit=0 bash -c 'exec ./tithe agent --join tls://broker:4222 --broker-ca ca.pem \
  --creds "$SLURMD_NODENAME.creds" --target db.example.com:5432 --name "$SLURMD_NODENAME"'
