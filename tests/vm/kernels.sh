#!/bin/bash
# usage: kernels.sh SERIES      SERIES is 6.1 or 6.12
# Fetches Debian's newest cloud kernel of that series, once, and prints the folder that holds its
# `vmlinuz`, and under `modules/` what the guests need of it, in the order of loading.
# Exit status 77: it cannot be had, and the reason is on standard error.
set -euo pipefail

# What the scenarios use; what is built into a kernel is left out by itself.
readonly wanted=(virtio_pci virtio_blk virtio_net veth 8021q bridge vxlan sch_tbf sch_netem nf_tables nft_chain_nat
  nft_masq bonding ipvlan macvlan wireguard esp4 xfrm_user authenc crypto_null sha256_generic tun ifb dummy sch_ingress
  act_mirred cls_matchall sch_cake tls gcm ctr ghash_generic aesni_intel)
readonly cache=${XDG_CACHE_HOME:-$HOME/.cache}/skbtrail-vm

refuse() {
  printf 'vm: no kernel %s: %s\n' "$series" "$*" >&2
  exit 77
}

# Both series come from bookworm-security; 6.12 is there since bookworm's own 6.1 got a successor.
newest_package() {
  local pattern
  case $series in
    6.1) pattern='^linux-image-6\.1\.[0-9]+-[0-9]+-cloud-amd64$' ;;
    6.12) pattern='^linux-image-6\.12\.[0-9]+\+deb12-cloud-amd64$' ;;
  esac
  apt-cache pkgnames "linux-image-$series." 2>/dev/null | grep -E "$pattern" | sort -V | tail -n 1 || true
}

newest_cached() {
  find "$cache" -mindepth 2 -maxdepth 2 -path "*/linux-image-$series.*/complete" -printf '%h\n' 2>/dev/null |
    sort -V | tail -n 1
}

# unpack_module FILE TO: Debian compresses the modules of some kernels.
unpack_module() {
  case $1 in
    *.xz) xz -dc "$1" >"$2" ;;
    *) cp "$1" "$2" ;;
  esac
}

# take_modules TREE VERSION TO: numbered in the order modprobe would load them.
take_modules() {
  local tree=$1 version=$2 to=$3 name file taken=' ' number=10
  depmod -b "$tree" "$version"
  for name in "${wanted[@]}"; do
    while read -r _ file _; do
      [[ $taken != *" $file "* ]] || continue
      taken+="$file "
      number=$((number + 1))
      unpack_module "$file" "$to/$number-$(basename "${file%.xz}")"
    done < <(modprobe --show-depends -d "$tree" -S "$version" "$name" | grep '^insmod ')
  done
}

fetch() {
  local package=$1 work vmlinuz
  work=$(mktemp -d "$cache/fetching.XXXXXX")
  # shellcheck disable=SC2064 # the folder of now
  trap "rm -rf '$work'" EXIT
  (cd "$work" && apt-get download -qq -o APT::Sandbox::User=root "$package" >&2) ||
    refuse "apt-get download $package failed"
  dpkg -x "$work"/*.deb "$work/tree"
  vmlinuz=$(find "$work/tree/boot" -name 'vmlinuz-*')
  mkdir -p "$work/ready/modules"
  cp "$vmlinuz" "$work/ready/vmlinuz"
  take_modules "$work/tree" "${vmlinuz##*/vmlinuz-}" "$work/ready/modules"
  echo "${wanted[*]}" >"$work/ready/complete"
  rm -rf "${cache:?}/$package"
  mv "$work/ready" "$cache/$package"
}

main() {
  local package folder
  [[ ${1:-} == 6.1 || ${1:-} == 6.12 ]] || {
    echo 'usage: kernels.sh 6.1|6.12' >&2
    exit 2
  }
  readonly series=$1
  mkdir -p "$cache"
  package=$(newest_package)
  if [[ ! $package ]] && ((EUID == 0)); then
    apt-get update -qq >&2 || true
    package=$(newest_package)
  fi
  folder=$cache/$package
  if [[ ! $package ]]; then
    folder=$(newest_cached)
    [[ $folder ]] || refuse "apt knows none; it is in bookworm-security: apt-get update?"
  elif [[ $(cat "$folder/complete" 2>/dev/null) != "${wanted[*]}" ]]; then
    fetch "$package"
  fi
  echo "$folder"
}

main "$@"
