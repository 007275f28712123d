#!/bin/sh
# Tells Chromium of the gate's CA, which is the first certificate of the bundle.
set -eu
store=$HOME/.pki/nssdb
mkdir -p "$store"
[ -e "$store/cert9.db" ] || certutil -d "sql:$store" -N --empty-password
openssl x509 -in "$SSL_CERT_FILE" -out ca.pem
certutil -d "sql:$store" -A -t C,, -n Sallyport -i ca.pem
