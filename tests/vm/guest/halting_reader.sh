#!/bin/bash
# Reads a stream in pieces of any size, and now and then halts: what comes meanwhile is coalesced. A
# program of its own: a stream of its own has its own task.
while read -r -N $((RANDOM % 3000 + 1)) _; do
  ((RANDOM % 3)) || read -rt "0.00$((RANDOM % 6))" _ <>/run/never
done
