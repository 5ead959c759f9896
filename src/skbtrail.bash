# shellcheck shell=bash
# bash completion for skbtrail: verbs and options as the program's own help prints them.
_skbtrail() {
  local word=${COMP_WORDS[COMP_CWORD]} words=''
  COMPREPLY=()
  if ((COMP_CWORD == 1)); then
    words=$(skbtrail help 2>/dev/null | sed -n 's/^  \([a-z][a-z-]*\)  *.*/\1/p')
  elif [[ $word == -* ]]; then
    words=$(skbtrail "${COMP_WORDS[1]}" --help 2>/dev/null | grep -oE -- '--[a-z][a-z0-9-]+')
  fi
  # Nothing to offer: the shell completes file names.
  mapfile -t COMPREPLY < <(compgen -W "$words" -- "$word")
}
complete -o default -F _skbtrail skbtrail
