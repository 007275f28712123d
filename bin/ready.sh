# Sourced with $root set: makes sure that the runtime and the packages are there, and sets $node to the Node.js binary.
# Shell built-ins alone on the way that is taken when nothing is missing: it costs no process.
node=$root/.runtime/node
if [ ! -x "$node" ] || [ ! "$root/node_modules/.ready" -nt "$root/package-lock.json" ] ||
  [ "$node" -nt "$root/node_modules/.ready" ]; then
  if ! command -v node >/dev/null 2>&1; then
    echo "sallyport: Node.js 18 or newer and npm are needed for the first set-up, and there is no node on PATH (on Debian: apt-get install -y nodejs npm)" >&2
    exit 1
  fi
  node "$root/bin/bootstrap.mjs" || exit $?
fi
