#!/bin/sh
# What tests and measurements need beside Node.js: installs it where that can be done (root, apt-get), else names it.
# Nothing is skipped for want of it. Arguments: further pairs, command:package.
set -eu
PATH=$PATH:/usr/sbin:/sbin

# command:package, as Debian has them
needs="
nginx:nginx-light squid:squid-openssl prometheus:prometheus promtool:prometheus
/usr/bin/python3:python3 curl:curl wget:wget openssl:openssl git:git bash:bash keytool:openjdk-17-jdk-headless javac:openjdk-17-jdk-headless
go:golang-go fcgiwrap:fcgiwrap chromium:chromium certutil:libnss3-tools
podman:podman crun:crun busybox:busybox-static bwrap:bubblewrap nft:nftables
iodine:iodine dns2tcpc:dns2tcp
ip:iproute2 unshare:util-linux nsenter:util-linux setpriv:util-linux prlimit:util-linux taskset:util-linux
$*"

missing=
for pair in $needs; do
  command -v "${pair%%:*}" >/dev/null 2>&1 && continue
  case " $missing " in
    *" ${pair##*:} "*) ;;
    *) missing="$missing ${pair##*:}" ;;
  esac
done

/usr/bin/python3 -c 'import requests' 2>/dev/null || missing="$missing python3-requests"
/usr/bin/python3 -c 'import httpx' 2>/dev/null || missing="$missing python3-httpx"
/usr/bin/python3 -c 'import botocore' 2>/dev/null || missing="$missing python3-botocore"

if [ -n "$missing" ]; then
  if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null 2>&1; then
    echo "sallyport: these Debian packages are needed first: apt-get install -y$missing" >&2
    exit 1
  fi
  echo "sallyport: installing what is needed beside Node.js:$missing" >&2
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
  echo "sallyport: network namespaces are needed: be root, or allow user namespaces (unshare -Urn true must work)" >&2
  exit 1
fi
