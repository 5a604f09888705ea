#!/bin/sh
# `npm ci` in a clone ends with this: it writes the modules that are made from other sources.
if [ ! -d node_modules/node ]; then
  echo 'waybill: the sources need the development dependencies: run npm ci without --omit=dev, or install the package' >&2
  exit 1
fi
exec npm run --silent generate
