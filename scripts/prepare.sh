#!/bin/sh
# `npm ci` in a clone ends with this: it writes the modules that are made from other sources. npm also runs it where another project installs
# from git, in a clone of its own: what is packed there needs the published form.
if [ ! -d node_modules/node ]; then
  echo 'waybill: the sources need the development dependencies: run npm ci without --omit=dev, or install the package' >&2
  exit 1
fi
case "${INIT_CWD:-$PWD}/" in
  "$PWD"/*) exec npm run --silent generate ;;
  *) exec npm run --silent build ;;
esac
