#!/bin/sh
# The demo project's whole test suite.
said=$(sh greet.sh Ada)
echo "greet.sh Ada: $said"
[ "$said" = "hello, Ada" ]
