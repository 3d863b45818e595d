#!/usr/bin/env bash
# Runs one share of an experiment as a task of a Slurm array; docs/how-to/cluster.md says how to submit and merge.
#
#   sbatch --array=0-31 docs/slurm/esscher-array.sh experiment.toml runs
#
#SBATCH --job-name=esscher
#SBATCH --ntasks=1
#SBATCH --cpus-per-task=1
#SBATCH --time=04:00:00
#SBATCH --requeue
set -euo pipefail

specification=${1:?"usage: sbatch --array=0-N $0 EXPERIMENT.toml [OUT [SHARES]]"}
out=${2:-runs}
: "${SLURM_ARRAY_TASK_ID:?this is a task of a Slurm array: submit it with sbatch --array=0-N}"

# Shares count from 0; an array may begin anywhere (--array=1-32), as long as its steps are one. Where only some tasks of an
# array are submitted again, SHARES says how many there are in all, and tasks are numbered from 0.
if [ $# -ge 3 ]; then
    index=$SLURM_ARRAY_TASK_ID shares=$3
else
    index=$((SLURM_ARRAY_TASK_ID - SLURM_ARRAY_TASK_MIN)) shares=$SLURM_ARRAY_TASK_COUNT
fi

# Nodes of different kinds: all shares must come from one instruction set, and every machine has the portable one.
# A task that was killed, preempted or timed out goes on where it was when it is submitted again.
exec "${ESSCHER:-esscher}" shard "$specification" "$index/$shares" \
    --out "$out" \
    --threads "${SLURM_CPUS_PER_TASK:-1}" \
    --instruction-set "${ESSCHER_INSTRUCTION_SET:-portable}"
