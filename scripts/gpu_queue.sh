# shellcheck shell=bash
#
# For scripts that run on a GPU machine. To be sourced.

# results_name: prints the name of this GPU's results file, h100_80gb_hbm3.json; returns 2 where there is no GPU
results_name() {
  local name
  name=$(nvidia-smi --query-gpu=name --format=csv,noheader | head -n 1)
  [ -n "$name" ] || { echo "error: no NVIDIA GPU here" >&2; return 2; }
  sed 's/^NVIDIA //; s/[^A-Za-z0-9]/_/g; s/$/.json/' <<<"$name" | tr '[:upper:]' '[:lower:]'
}

# runs_here PROBLEM: whether this GPU is of the problem's architecture or a later one. A name that ends in "a",
# such as sm_100a, is of one capability alone.
runs_here() {
  local arch capability
  arch=$(sed -n 's/^arch: sm_//p' "$(dirname "${BASH_SOURCE[0]}")/../problems/$1/problem.yaml")
  capability=$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader | head -n 1 | tr -d '. ')
  case $arch in
    '') ;;
    *a) [ "$capability" = "${arch%a}" ] ;;
    *) [ "$capability" -ge "$arch" ] ;;
  esac
}

# on_every_gpu COMMAND < LINES: runs COMMAND with the words of each line as arguments, one line at a time on
# each visible GPU (CUDA_VISIBLE_DEVICES tells COMMAND which). Returns 1 if a COMMAND failed.
on_every_gpu() {
  local command=$1 folder gpus gpu worker status=0 workers=()
  folder=$(mktemp -d)
  cat >"$folder/lines"
  gpus=${CUDA_VISIBLE_DEVICES:-$(nvidia-smi --query-gpu=index --format=csv,noheader | paste -sd,)}
  for gpu in ${gpus//,/ }; do
    (
      export CUDA_VISIBLE_DEVICES=$gpu
      well=0
      while read -ra words < <(flock "$folder/lock" \
        sh -c "head -n 1 '$folder/lines'; sed -i 1d '$folder/lines'") && [ "${#words[@]}" -gt 0 ]; do
        "$command" "${words[@]}" || well=1
      done
      exit $well
    ) &
    workers+=($!)
  done
  for worker in "${workers[@]}"; do wait "$worker" || status=1; done
  rm -rf "$folder"
  return $status
}
