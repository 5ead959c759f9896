#!/bin/bash
# usage: check-install.sh BUILD_FOLDER
# Installs that build into a temporary folder and checks that it is complete: the program runs, every
# public header compiles on its own, a program links against the library with what pkg-config says.
set -euo pipefail

build=$1
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

cache() { sed -n "s/^$1:[A-Z]*=//p" "$build/CMakeCache.txt"; }

fail() {
  printf 'check-install: %s\n' "$*" >&2
  exit 1
}

sanitize=$(cache SKBTRAIL_SANITIZE)
compiler=$(cache CMAKE_CXX_COMPILER)

cmake --install "$build" --prefix "$folder" >"$folder/install.log" || {
  cat "$folder/install.log" >&2
  fail "cmake --install failed"
}

pc=$(find "$folder" -name skbtrail.pc)
[[ $pc ]] || fail "no skbtrail.pc"
export PKG_CONFIG_PATH=${pc%/*}
# The file names the prefix of configure time; the copy under test lies elsewhere.
old=$(pkg-config --variable=prefix skbtrail)
sed -i "s|$old|$folder|g" "$pc"
read -ra flags <<<"$(pkg-config --cflags --libs skbtrail)"
[[ $sanitize ]] && flags+=("-fsanitize=$sanitize")

(cd "$folder/include" && find skbtrail -name '*.h' | sort) >"$folder/headers"
[[ -s $folder/headers ]] || fail "no headers"
{
  sed 's|.*|#include <&>|' "$folder/headers"
  # The example of capture.h, on a capture named on the command line.
  cat <<'CC'
#include <cstdio>
int main(int, char** argv) {
  auto capture = skbtrail::Capture::open(argv[1]);
  if (!capture) return 1;
  auto receive = capture->decoder<skbtrail::NetifReceiveSkb>();
  skbtrail::RawEvent raw;
  skbtrail::NetifReceiveSkb event;
  unsigned long bytes = 0;
  while (capture->next(raw)) {
    if (raw.id == receive->id() && receive->decode(raw, event)) bytes += event.len;
  }
  return bytes > 0 ? 0 : 2;
}
CC
} >"$folder/all.cc"
"$compiler" -std=c++20 -Wall -Werror "$folder/all.cc" "${flags[@]}" -o "$folder/all" ||
  fail "a program that includes every public header does not build"
"$folder/all" "$(cache CMAKE_HOME_DIRECTORY)/tests/data/6.12-version6.dat" || fail "that program does not run"

"$folder/bin/skbtrail" --version >/dev/null || fail "bin/skbtrail does not run"
[[ -d $folder/share/skbtrail/filters ]] || fail "no share/skbtrail/filters"
for source in "$(cache CMAKE_HOME_DIRECTORY)"/man/*.scd; do
  page=$(basename "$source" .scd)
  command -v scdoc >/dev/null || break
  [[ -s $folder/share/man/man${page##*.}/$page ]] || fail "no man page $page"
done
