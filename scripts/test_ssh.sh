#!/usr/bin/env bash
# Tests `measure --on ssh://…` with a real sshd on this machine: with its own key and port, and a separate
# home folder for the remote side. Needs sshd (apt-get install openssh-server) but no root. Your own files are
# not touched, and sshd ends with the script.
#
#   scripts/test_ssh.sh [CAPSTONE, default build/release/bin/capstone]
#
# Exit codes: 0 success · 1 something is wrong · 3 sshd does not start.
set -euo pipefail
cd "$(dirname "$0")/.."
capstone=$(realpath "${1:-build/release/bin/capstone}")
sshd=$(PATH=$PATH:/usr/sbin:/sbin command -v sshd) ||
  { echo "error: no sshd" >&2; echo "  hint: apt-get install openssh-server" >&2; exit 3; }
work=$(mktemp -d)
daemon=
finish() {
  [ -z "$daemon" ] || kill "$daemon" 2>/dev/null || true
  wait 2>/dev/null || true
  rm -rf "$work"
}
trap finish EXIT
port=$((20000 + RANDOM % 20000))
ssh-keygen -q -t ed25519 -N '' -f "$work/host"
ssh-keygen -q -t ed25519 -N '' -f "$work/user"
cp "$work/user.pub" "$work/authorized"
mkdir -p "$work/there" "$work/bin"
[ "$(id -u)" -ne 0 ] || mkdir -p /run/sshd
cat > "$work/sshd.conf" <<CONF
Port $port
ListenAddress 127.0.0.1
HostKey $work/host
AuthorizedKeysFile $work/authorized
PidFile $work/sshd.pid
StrictModes no
UsePAM no
PasswordAuthentication no
PermitRootLogin prohibit-password
SetEnv HOME=$work/there XDG_CACHE_HOME=$work/there/cache XDG_STATE_HOME=$work/there/state CAPSTONE_CACHE=${CAPSTONE_CACHE:-$work/there/cache/capstone}
CONF
"$sshd" -D -e -f "$work/sshd.conf" 2> "$work/sshd.log" &
daemon=$!
# The real ssh with the test's key; a student sets this in ~/.ssh/config.
cat > "$work/bin/ssh" <<WRAP
#!/bin/sh
exec $(command -v ssh) -F none -i $work/user -o IdentitiesOnly=yes -o StrictHostKeyChecking=accept-new -o UserKnownHostsFile=$work/known -o LogLevel=ERROR "\$@"
WRAP
chmod +x "$work/bin/ssh"
export PATH=$work/bin:$PATH
place=ssh://$(id -un)@127.0.0.1:$port
up=no
for _ in $(seq 50); do
  if ssh -T -o BatchMode=yes "$place" true 2> "$work/try"; then up=yes; break; fi
  sleep 0.2
done
[ $up = yes ] ||
  { echo "error: sshd does not start: $(cat "$work/try")" >&2; tail -n 5 "$work/sshd.log" >&2; exit 3; }

failed=0
wrong() { echo "wrong: $1" >&2; failed=1; }
cd "$work"
"$capstone" init vector_add p --from 01 >/dev/null
cd p
measure=("$capstone" measure --on "$place" --backend emulated --hidden 0 --quick --program)
"${measure[@]}" "$capstone" -m "remote" > ../first 2>&1 || wrong "measure: $(cat ../first)"
grep -q '1 record from' ../first || wrong "no record was added: $(cat ../first)"
[ -z "$(ls -A "$work/there/cache/capstone/remote")" ] || wrong "files are left on the remote side"
# Killed after the remote side has started: the rerun resumes it, and it is judged once. A wrapper on the
# remote side counts the calls.
printf '#!/bin/sh\necho x >> %q\nexec %q "$@"\n' "$work/calls" "$capstone" > "$work/counted"
chmod +x "$work/counted"
printf '// v2\n' >> human/kernel.cu
"${measure[@]}" "$work/counted" > ../killed 2>&1 &
pid=$!
for _ in $(seq 200); do [ -s "$work/calls" ] && break; sleep 0.1; done
kill -KILL "$pid"; wait "$pid" 2>/dev/null || true
"${measure[@]}" "$work/counted" > ../resumed 2>&1 || wrong "not resumed: $(cat ../resumed)"
[ "$(wc -l < "$work/calls")" -eq 1 ] || wrong "judged $(wc -l < "$work/calls") times"
[ "$("$capstone" ledger | grep -c 'measurement.*PASS')" -eq 2 ] ||
  wrong "not two records: $("$capstone" ledger)"
"$capstone" ledger --verify >/dev/null || wrong "the ledger is not whole"
# A port without a server; a key that is refused.
"$capstone" measure --on "ssh://$(id -un)@127.0.0.1:1" > ../refused 2>&1 &&
  wrong "the port has no server" || [ $? -eq 3 ] || wrong "exit code"
grep -q 'error: no connection to' ../refused || wrong "refused: $(cat ../refused)"
: > "$work/authorized"
"${measure[@]}" "$capstone" > ../denied 2>&1 && wrong "the key must be refused" || [ $? -eq 3 ] ||
  wrong "exit code"
grep -q 'Permission denied' ../denied || wrong "denied: $(cat ../denied)"
[ "$failed" -eq 0 ] && echo "ok: measured over a real ssh, resumed after a kill, and refusals reported"
exit "$failed"
