#!/bin/bash
# usage: check-manpages.sh SKBTRAIL
# The manual says what the program says: every verb has a page and stands in the main page, every
# option of `skbtrail VERB --help` stands in that page and the other way round, every page builds.
set -euo pipefail
shopt -s nullglob

skbtrail=$1
man=$(cd "$(dirname "$0")/../../man" && pwd)
failures=0

complain() {
  printf 'check-manpages: %s\n' "$*" >&2
  failures=$((failures + 1))
}

verbs() { "$skbtrail" help | sed -n 's/^  \([a-z][a-z-]*\)  *.*/\1/p'; }

# An option's line in --help is "  -o [ --output ] FILE  text" or "  --output FILE  text".
options_of_help() {
  "$skbtrail" "$1" --help | sed -nE 's/^ +(-. \[ )?(--[a-z][a-z0-9-]+).*/\2/p' | sort -u
}
# An option's entry in a page is a line such as: *-o*, *--output* _FILE_
options_of_page() { grep -E '^\*-' "$1" | grep -oE -- '--[a-z][a-z0-9-]+' | sort -u; }

check_verb() {
  local verb=$1 page=$man/skbtrail-$1.1.scd option
  grep -qF "$verb" "$man/skbtrail.1.scd" || complain "skbtrail.1.scd does not name the verb $verb"
  if [[ ! -e $page ]]; then
    complain "the verb $verb has no page: man/${page##*/}"
    return
  fi
  while read -r option; do
    complain "${page##*/} does not explain $option"
  done < <(comm -23 <(options_of_help "$verb") <(options_of_page "$page"))
  while read -r option; do
    complain "${page##*/} explains $option, which skbtrail $verb does not have"
  done < <(comm -13 <(options_of_help "$verb") <(options_of_page "$page"))
}

mapfile -t known < <(verbs)
((${#known[@]} > 0)) || complain "'$skbtrail help' lists no verbs"
for verb in "${known[@]}"; do check_verb "$verb"; done

for page in "$man"/skbtrail-*.1.scd; do
  verb=${page##*/skbtrail-}
  verb=${verb%.1.scd}
  [[ " ${known[*]} " == *" $verb "* ]] || complain "${page##*/} is about a verb that does not exist"
done
for page in "$man"/*.scd; do
  message=$(scdoc <"$page" 2>&1 >/dev/null) || complain "${page##*/} does not build: $message"
done

((failures == 0))
