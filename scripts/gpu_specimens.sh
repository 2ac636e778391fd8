#!/usr/bin/env bash
# On a GPU machine with Nsight Compute: checks that each specimen of the profiling session moves its own
# counter and no other.
#
#   scripts/gpu_specimens.sh OUT [capstone]
#
# Every file of reference_kernels/L7_profiling/damped_steps is profiled. OUT/specimens.json is the record (for
# each specimen and headline counter: its value, the value of the sound kernel, the factor), OUT/NAME.csv the
# output of ncu.
#
# Exit codes: 0 every own counter changes by a factor of at least 5 and no other by more than 2 · 1 at least
# one does not · 2 something is missing.
set -uo pipefail
out=$(mkdir -p "$1" && cd "$1" && pwd)
capstone=${2:-capstone}
"$capstone" --version >/dev/null 2>&1 || { echo "error: $capstone does not run" >&2; exit 2; }
for name in 01_uncoalesced 02_bank_conflict 03_spill 04_divergence 05_low_occupancy 06_tail_wave \
  07_launch_bound 08_sound; do
  "$capstone" profile "$name" --problem damped_steps --csv "$out/$name.csv" --format json \
    >"$out/$name.json" 2>"$out/$name.log" ||
    { echo "error: $name: $(grep -m 1 -A 2 error: "$out/$name.log")" >&2; exit 2; }
done
python3 - "$out" "$("$capstone" --version)" <<'P'
import datetime, json, pathlib, sys

out, tool = pathlib.Path(sys.argv[1]), sys.argv[2]
own = {"01_uncoalesced": "sectors_per_request", "02_bank_conflict": "wavefronts_over_ideal", "03_spill": "local_requests_per_warp",
       "04_divergence": "lanes_per_instruction", "05_low_occupancy": "occupancy_limit_percent", "06_tail_wave": "tail_percent", "07_launch_bound": "launches"}
better_is_more = {"lanes_per_instruction", "occupancy_limit_percent"}
floor = {"local_requests_per_warp": 1.0, "tail_percent": 5.0}  # below this value a counter means nothing


def counters(name):
    profile = json.loads((out / (name + ".json")).read_text())
    (kernel,) = profile["kernels"]
    return profile, {c: kernel[c] for c in sorted(set(own.values()))}


def factor(counter, value, sound):
    if value is None or sound is None:
        return None
    value, sound = max(value, floor.get(counter, 0)), max(sound, floor.get(counter, 0))
    return sound / value if counter in better_is_more else value / sound


profile, sound = counters("08_sound")
record = {"tool": tool, "device": profile["device"], "driver": profile["driver"], "ncu": profile["ncu"], "date": datetime.date.today().isoformat(),
          "sizes": profile["sizes"], "sound": sound, "specimens": [], "agrees": True}
for name, counter in own.items():
    _, values = counters(name)
    factors = {c: factor(c, v, sound[c]) for c, v in values.items()}
    moved = factors[counter] is not None and factors[counter] >= 5
    alone = all(f is None or 0.5 <= f <= 2 for c, f in factors.items() if c != counter)
    record["specimens"].append({"specimen": name, "own": counter, "values": values, "factors": factors, "own_moves_fivefold": moved, "others_within_twofold": alone})
    record["agrees"] &= moved and alone
    print(f"{name:18} {counter:24} {values[counter]} (sound {sound[counter]}), factor {factors[counter]}: {'as expected' if moved and alone else 'NOT AS EXPECTED: ' + str(factors)}")
(out / "specimens.json").write_text(json.dumps(record, indent=1) + "\n")
sys.exit(0 if record["agrees"] else 1)
P
