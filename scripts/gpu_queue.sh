# shellcheck shell=bash
#
# For scripts that use every GPU of a machine. To be sourced.

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
