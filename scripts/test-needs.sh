#!/bin/sh
# What the tests need beside Node.js: installs it where that can be done (root, apt-get), else names it. Nothing is skipped.
set -eu
PATH=$PATH:/usr/sbin:/sbin

# command and the Debian package that brings it
needs='
nginx nginx-light
prometheus prometheus
promtool prometheus
python3 python3
ip iproute2
curl curl
openssl openssl
unshare util-linux
nsenter util-linux
git git
'

missing=
while read -r command package; do
  [ -n "$command" ] || continue
  command -v "$command" >/dev/null 2>&1 && continue
  case " $missing " in *" $package "*) ;; *) missing="$missing $package" ;; esac
done <<END
$needs
END

if [ -n "$missing" ]; then
  if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null 2>&1; then
    echo "The tests need these Debian packages: apt-get install -y$missing" >&2
    exit 1
  fi
  echo "sallyport: installing what the tests need:$missing" >&2
  # The tests start their own nginx and Prometheus; the packages shall start none.
  policy=/usr/sbin/policy-rc.d
  if [ ! -e $policy ]; then
    trap 'rm -f $policy' EXIT
    printf '#!/bin/sh\nexit 101\n' >$policy
    chmod +x $policy
  fi
  export DEBIAN_FRONTEND=noninteractive
  apt-get update -qq >&2
  # shellcheck disable=SC2086 # one word a package
  apt-get install -y -qq --no-install-recommends $missing </dev/null >&2
fi

if [ "$(id -u)" != 0 ] && ! unshare -Urn true 2>/dev/null; then
  echo "The tests of whole paths make network namespaces: run them as root, or allow user namespaces (unshare -Urn true)" >&2
  exit 1
fi
