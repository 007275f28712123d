#!/bin/sh
# apt from a repository of the test's own, everything that it keeps in the working directory.
set -eu
mkdir -p state/lists/partial cache/archives/partial
: >status
echo "deb [trusted=yes] https://$1/apt ./" >sources
cat >apt.conf <<END
APT::Architecture "all";
APT::Architectures { "all"; };
APT::Sandbox::User "";
Acquire::Languages "none";
Acquire::Retries "0";
Dir::State "$PWD/state";
Dir::State::status "$PWD/status";
Dir::Cache "$PWD/cache";
Dir::Etc::SourceList "$PWD/sources";
Dir::Etc::SourceParts "/dev/null";
Dir::Etc::TrustedParts "/dev/null";
END
[ -z "${HTTPS_PROXY:-}" ] || echo "Acquire::https::CAInfo \"$SSL_CERT_FILE\";" >>apt.conf
export APT_CONFIG=$PWD/apt.conf
apt-get -q update -o APT::Update::Error-Mode=any
apt-get -q download hello-thing
cat hello-thing_*
