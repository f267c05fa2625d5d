#!/bin/bash
# Runs a command in a clean clone of this checkout's HEAD inside a fresh Debian 12 root (debootstrap minbase with git and
# ca-certificates, nothing else), to prove that ./dev installs what it needs.
#
#   tools/fresh_root.sh [--reuse] DIR [COMMAND...]        COMMAND is ./dev build unless given
#
# DIR.base is bootstrapped once; every run lays DIR anew from it, unless --reuse keeps the DIR of the run before (with the
# packages it installed) and renews the clone only. DIR stays behind for a look: chroot DIR. The mirror and apt's settings
# are the host's; MIRROR=URL and SUITE=NAME override. Needs root and debootstrap. Exit status: COMMAND's, or 3 when the
# root could not be made.
set -euo pipefail

say() { printf 'fresh_root: %s\n' "$*" >&2; }
die() { say "$*"; exit 3; }

reuse=0
if [[ ${1:-} == --reuse ]]; then reuse=1; shift; fi
[[ $# -ge 1 && $1 != -* ]] || { sed -n '2,10s/^# \{0,1\}//p' "$0"; exit 2; }
dir=$(realpath -m -- "$1"); shift
[[ $# -gt 0 ]] || set -- ./dev build
[[ $(id -u) -eq 0 ]] || die "must run as root (chroot and mount)"
command -v debootstrap >/dev/null || die "debootstrap is missing: apt-get install debootstrap"
[[ $dir != / ]] || die "DIR must not be /"
source_tree=$(git -C "$(dirname "$(realpath "$0")")" rev-parse --show-toplevel)
suite=${SUITE:-bookworm}
base=$dir.base
marker=.sojourn-fresh-root # only a folder that carries it is ever removed

remove() {
  [[ -e $1 ]] || return 0
  [[ -e $1/$marker ]] || die "$1 exists and was not made by this script; remove it or choose another"
  rm -rf --one-file-system -- "$1"
}

if [[ ! -e $base/$marker-complete ]]; then
  mirror=${MIRROR:-$(apt-get indextargets --format '$(REPO_URI) $(COMPONENT)' 'Created-By: Packages' "Codename: $suite" |
    awk '$2 == "main" { print $1; exit }')}
  [[ -n $mirror ]] || die "apt on this host has no source for $suite; set MIRROR=URL"
  remove "$base"
  mkdir -p "$base"
  touch "$base/$marker"
  say "bootstrapping $suite into $base"
  debootstrap --variant=minbase --include=git,ca-certificates "$suite" "$base" "$mirror" >"$base.log" 2>&1 ||
    die "debootstrap failed, see $base.log: $(tail -n 1 "$base.log")"
  rm -f "$base/etc/apt/sources.list"
  cp -a /etc/apt/. "$base/etc/apt/"
  cp -an /usr/share/keyrings/. "$base/usr/share/keyrings/" # the ones that the sources' Signed-By may name
  rm -rf "$base/var/lib/apt/lists" "$base"/var/cache/apt/archives/*.deb
  touch "$base/$marker-complete"
fi

if [[ $reuse -eq 0 || ! -e $dir/$marker ]]; then
  remove "$dir"
  cp -a "$base" "$dir"
fi
cp -L /etc/resolv.conf /etc/hosts "$dir/etc/" # a name server may have changed since
rm -rf "$dir/root/sojourn"
git clone --quiet --no-hardlinks "$source_tree" "$dir/root/sojourn"
say "$(git -C "$dir/root/sojourn" log -1 --format='%h %s'): $*"

# The mounts live in a mount namespace of their own and go with it, so none can be left under DIR.
start=$SECONDS status=0
unshare --mount --fork bash -c '
  mount -t proc proc "$0/proc" && mount -t tmpfs tmpfs "$0/dev/shm" || exit 3
  root=$0; exec env -i HOME=/root TERM="${TERM:-dumb}" LANG=C.UTF-8 PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
    ${http_proxy:+http_proxy="$http_proxy"} ${https_proxy:+https_proxy="$https_proxy"} ${SOJOURN_JOBS:+SOJOURN_JOBS="$SOJOURN_JOBS"} \
    chroot "$root" bash -c "cd /root/sojourn && exec \"\$@\"" sojourn "$@"' "$dir" "$@" || status=$?
say "exit $status after $((SECONDS - start)) s; the root stays in $dir"
exit $status
