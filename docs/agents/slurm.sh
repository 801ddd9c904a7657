#!/bin/bash
#SBATCH --job-name=tithe-agents
#SBATCH --nodes=8
#SBATCH --ntasks-per-node=1
#SBATCH --exclusive
#SBATCH --time=02:00:00
# Agents on eight nodes: sbatch slurm.sh, or only the srun line within your own allocation. Each node runs one agent and
# nothing else. An agent has its node's name (letters, digits, `-` and `_`). $HOME/tithe is a shared folder of all nodes
# with ca.pem and NODE.creds, both of mode 600.
#
# srun starts tasks some milliseconds apart, which does no harm: a frame begins when all agents are connected, at a time
# that the coordinator sets. --kill-on-bad-exit=0: if an agent fails, the others continue; the run reports which one is
# missing.
set -euo pipefail
cd "$HOME/tithe"
srun --ntasks-per-node=1 --kill-on-bad-exit=0 bash -c 'exec ./tithe agent --join tls://broker:4222 --broker-ca ca.pem \
  --creds "$SLURMD_NODENAME.creds" --target db.example.com:5432 --name "$SLURMD_NODENAME"'
