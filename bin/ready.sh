# Sourced with $root set: makes sure that the runtime and the packages are there, and sets $node to the Node.js binary.
# Shell built-ins alone on the way that is taken when nothing is missing: it costs no process.
node=$root/.runtime/node
if [ ! -x "$node" ] || [ ! "$root/node_modules/.ready" -nt "$root/package-lock.json" ] ||
  [ "$node" -nt "$root/node_modules/.ready" ]; then
  for tool in node npm; do
    command -v $tool >/dev/null 2>&1 && continue
    echo "sallyport: the first set-up needs Node.js 18 or newer and npm, and $tool is not on PATH (on Debian: apt-get install -y nodejs npm)" >&2
    exit 1
  done
  node "$root/bin/bootstrap.mjs" || exit $?
fi
