# shellcheck shell=bash
# bash completion for skbtrail: verbs, options and their values as the program itself tells them.

# Verbs, of the overview.
_skbtrail_verbs() {
  "$1" help 2>/dev/null | sed -n 's/^  \([a-z][a-z-]*\)  *.*/\1/p'
}

# The options of a verb: not those that its examples name, which may be another verb's.
_skbtrail_options() {
  "$1" "$2" --help 2>/dev/null | sed -nE 's/^  (-[a-zA-Z] \[ )?(--[a-z][a-z0-9-]*).*/\2/p'
}

# What an option or a word may be, where it is one of a few: told where it is none of them.
_skbtrail_told() {
  "$@" 2>&1 >/dev/null | sed -nE 's/.*; (there are|it has:) //p' | tr -d ,
}

# The capture on the command line, the usual one otherwise.
_skbtrail_capture() {
  local i
  for ((i = 2; i < COMP_CWORD; ++i)); do
    case ${COMP_WORDS[i - 1]} in
      -i | --input) echo "${COMP_WORDS[i]}" && return ;;
      -*) ;;
      *) [[ ${COMP_WORDS[i]} != -* && -f ${COMP_WORDS[i]} ]] && echo "${COMP_WORDS[i]}" && return ;;
    esac
  done
  echo trace.dat
}

# The values of an option: nothing where any word will do.
_skbtrail_values() {
  local program=$1 verb=$2 option=$3
  case $option in
    --format) echo text json ;;
    --outcome) _skbtrail_told "$program" "$verb" --outcome '' ;;
    --buffer) _skbtrail_told "$program" "$verb" --buffer '' -i "$(_skbtrail_capture)" ;;
    --profile) "$program" list profiles 2>/dev/null | sed 's/ .*//' ;;
    --file-version) echo 6 7 ;;
    --clock) echo local global counter uptime perf mono mono_raw boot tai x86-tsc ;;
    -d | --dev) [[ $verb == record ]] && "$program" list devices 2>/dev/null | sed 's/ .*//' ;;
  esac
}

# Two stages, A:B. A colon is a word of its own unless COMP_WORDBREAKS was told otherwise.
_skbtrail_stages() {
  local word=$1 before=$2 stages
  stages=$(_skbtrail_told "$3" packets --stage '')
  if [[ $word == *:* && $word != : ]]; then
    mapfile -t COMPREPLY < <(compgen -P "${word%%:*}:" -W "$stages" -- "${word#*:}")
  elif [[ $word == : || $before == : ]]; then
    mapfile -t COMPREPLY < <(compgen -W "$stages" -- "${word#:}")
  else
    compopt -o nospace 2>/dev/null
    mapfile -t COMPREPLY < <(compgen -S : -W "$stages" -- "$word")
  fi
}

_skbtrail() {
  local program=$1 word=${COMP_WORDS[COMP_CWORD]} verb=${COMP_WORDS[1]} words='' i
  local before=${COMP_WORDS[COMP_CWORD - 1]}
  COMPREPLY=()
  if ((COMP_CWORD == 1)); then
    words="$(_skbtrail_verbs "$program") help --help --version"
  elif [[ $verb == help ]]; then
    words=$(_skbtrail_verbs "$program")
  else
    for ((i = 2; i < COMP_CWORD; ++i)); do
      [[ ${COMP_WORDS[i]} == -- ]] || continue
      # The command of record.
      ((i + 1 == COMP_CWORD)) && mapfile -t COMPREPLY < <(compgen -c -- "$word")
      return
    done
    # --option=value is three words.
    if [[ $word == = ]]; then
      word=''
    elif [[ $before == = ]]; then
      before=${COMP_WORDS[COMP_CWORD - 2]}
    fi
    if [[ $before == --stage || ($word == : && $before != -*) || $before == : ]]; then
      for ((i = COMP_CWORD - 1; i > COMP_CWORD - 5 && i > 1; --i)); do
        [[ ${COMP_WORDS[i]} == --stage ]] || continue
        _skbtrail_stages "$word" "$before" "$program"
        return
      done
    fi
    words=$(_skbtrail_values "$program" "$verb" "$before")
    if [[ -z $words && $word == -* ]]; then
      words=$(_skbtrail_options "$program" "$verb")
    elif [[ -z $words && $before != -* ]]; then
      case $verb in
        list) ((COMP_CWORD == 2)) && words='profiles profile events devices' ;;
        netdev-times) words='rx tx' ;;
      esac
      [[ $verb == list && $before == profile ]] && words=$(_skbtrail_values "$program" list --profile)
    fi
  fi
  # Nothing to offer: the shell completes file names.
  [[ -z $words ]] || mapfile -t COMPREPLY < <(compgen -W "$words" -- "$word")
}
complete -o default -F _skbtrail skbtrail
