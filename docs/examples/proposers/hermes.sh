#!/bin/sh
# Hermes as a proposer: a new session for each prompt, its answer alone on stdout.
#
#     gitledger config set proposer.command "$HOME/bin/hermes.sh"
#
# A prompt is one word of a command line here, which Linux bounds at 128 KiB: enough for a memory file of 100 KB.
exec hermes chat -Q -q "$(cat)"
