#!/bin/bash
# usage: image.sh SKBTRAIL KERNEL_FOLDER INITRAMFS SCENARIO...
# Builds the root of one boot: programs of this machine with their libraries, the kernel's modules,
# skbtrail with its filters, and the scenarios to run, as cpio archives behind one another.
# Programs change seldom: their archive is kept, and built anew when one of them is newer. Its name is
# made of theirs: other checkouts may want others.
set -euo pipefail

readonly programs=(bash busybox grep ip ss tc nft tcpdump ethtool nginx wrk iperf3 trace-cmd wg socat setpriv taskset timeout openssl)
readonly cache=${XDG_CACHE_HOME:-$HOME/.cache}/skbtrail-vm
here=$(realpath "$(dirname "${BASH_SOURCE[0]}")")
readonly here source_tree=${here%/tests/vm}

# A cpio archive starts at a multiple of 4 bytes; cpio itself fills up to 512.
pack() { (cd "$1" && find . -print0 | cpio --null --create --format newc --quiet); }

# The shared objects a program is loaded with, its interpreter included.
libraries_of() { ldd "$1" 2>/dev/null | grep -o '/[^ ]*' || true; }

make_tree() {
  mkdir -p "$1"/usr/{bin,sbin,lib,lib64} "$1"/{dev,etc,mnt,out,proc,root,run,sys,tmp,var/log/nginx} \
    "$1"/var/lib/nginx
  ln -s usr/bin usr/sbin usr/lib usr/lib64 "$1"
}

# add_file TREE FILE...: at the path it has here.
add_files() {
  local tree=$1 file
  shift
  for file in "$@"; do
    [[ -e $tree$file ]] || install -D "$file" "$tree$file"
  done
}

# build_programs TREE PROGRAM...
build_programs() {
  local tree=$1 program path
  shift
  make_tree "$tree"
  for program in "$@"; do
    path=$(command -v "$program")
    install "$path" "$tree/usr/bin/$program"
    mapfile -t libraries < <(libraries_of "$path")
    add_files "$tree" "${libraries[@]}"
  done
  [[ " $* " == *' busybox '* ]] || return 0
  for program in $(busybox --list); do
    [[ -e $tree/usr/bin/$program ]] || ln -s busybox "$tree/usr/bin/$program"
  done
  printf '%s\n' 'root:x:0:0::/root:/bin/bash' 'user:x:1000:1000::/tmp:/bin/bash' >"$tree/etc/passwd"
  printf '%s\n' 'root:x:0:' 'user:x:1000:' 'tracing:x:2000:' >"$tree/etc/group"
}

# programs_archive NAME PROGRAM...: prints its path.
programs_archive() {
  local name=$1 program newer=0 kept
  shift
  kept=$cache/$name-$(cksum <<<"$*" | cut -d ' ' -f 1).cpio
  for program in "$@"; do
    [[ $kept -nt $(command -v "$program") ]] || newer=1
  done
  [[ $kept -nt ${BASH_SOURCE[0]} ]] || newer=1
  if ((newer)); then
    build_programs "$work/$name" "$@"
    pack "$work/$name" >"$work/$name.cpio"
    mv "$work/$name.cpio" "$kept"
  fi
  echo "$kept"
}

# What differs from boot to boot.
build_rest() {
  local tree=$1 skbtrail=$2 kernel=$3
  shift 3
  mkdir -p "$tree"/usr/{bin,lib,share/skbtrail} "$tree"/vm
  install -s "$skbtrail" "$tree/usr/bin/skbtrail"
  cp -r "$source_tree/filters" "$tree/usr/share/skbtrail/filters"
  cp -r "$here/guest/." "$here/scenarios" "$kernel/modules" "$tree/vm"
  install "$here/guest/init.sh" "$tree/init"
  printf '%s\n' "$@" >"$tree/vm/list"
}

main() {
  local skbtrail=$1 kernel=$2 image=$3 library archives=()
  work=$(mktemp -d)
  readonly work
  trap 'rm -rf "$work"' EXIT
  mkdir -p "$cache" "$work/rest"
  archives+=("$(programs_archive programs "${programs[@]}")")
  # perf with its libraries is larger than all others together.
  if [[ " ${*:4} " == *perf* ]]; then archives+=("$(programs_archive perf perf)"); fi
  build_rest "$work/rest" "$skbtrail" "$kernel" "${@:4}"
  for library in $(libraries_of "$skbtrail"); do
    # /lib is a symbolic link in the programs' archive, and must stay one.
    install -D "$library" "$work/rest/$(realpath "$(dirname "$library")")/$(basename "$library")"
  done
  {
    cat "${archives[@]}"
    pack "$work/rest"
  } >"$image"
}

main "$@"
