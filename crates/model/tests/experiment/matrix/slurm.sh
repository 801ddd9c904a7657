#!/bin/sh
# What TLS and pages cost on our hosts: 20 tasks, plan 0123456789abcdef.
# One array per kind of machine, one job per experiment, one exclusive node per replicate. If a node is lost,
# its job returns to the queue; finished tasks end at once when they are started again.
# All nodes must share the folder /shared/tithe.
set -eu

# small
sbatch --job-name=tithe-1-01234567-0 --array=0-1 --nodes=5 --ntasks-per-node=1 --exclusive --requeue --constraint=c7i.large --partition=cloud <<'JOB'
#!/bin/sh
export FIRST=$((0 + SLURM_ARRAY_TASK_ID * 5))
srun --wait=0 --kill-on-bad-exit=0 sh -c \
    'exec tithe matrix run "$1" --task $((FIRST + SLURM_PROCID)) --into "$2" --local "$3" --quiet' \
    tithe 'my matrix.toml' /shared/tithe "${TMPDIR:-/var/tmp}"
JOB

# large
sbatch --job-name=tithe-1-01234567-1 --array=0-1 --nodes=5 --ntasks-per-node=1 --exclusive --requeue <<'JOB'
#!/bin/sh
export FIRST=$((10 + SLURM_ARRAY_TASK_ID * 5))
srun --wait=0 --kill-on-bad-exit=0 sh -c \
    'exec tithe matrix run "$1" --task $((FIRST + SLURM_PROCID)) --into "$2" --local "$3" --quiet' \
    tithe 'my matrix.toml' /shared/tithe "${TMPDIR:-/var/tmp}"
JOB
