#!/usr/bin/env bash
# Makes the certificates of the TLS tests again, each valid from 2020 for a hundred years but for the expired one. Their
# keys protect nothing.
set -euo pipefail
cd "$(dirname "$0")"
work=$(mktemp -d)
trap 'rm -r "$work"' EXIT
touch "$work/index"
cat >"$work/conf" <<CONF
[ca]
default_ca = here
[here]
database = $work/index
new_certs_dir = $work
default_md = sha256
policy = any
rand_serial = yes
unique_subject = no
[any]
commonName = supplied
[authority]
basicConstraints = critical,CA:TRUE
keyUsage = critical,keyCertSign
[good]
subjectAltName = DNS:app.test,IP:127.0.0.1
[expired]
subjectAltName = DNS:app.test,IP:127.0.0.1
[published]
subjectAltName = DNS:*.eu-west-1.amazonaws.com,DNS:www.googleapis.com
[other]
subjectAltName = DNS:other.test
CONF

make() { # NAME EXTENSIONS END [openssl ca options]
    openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -out "$1.key" 2>/dev/null
    openssl req -new -key "$1.key" -subj "/CN=hookstead test $1" -out "$work/$1.csr"
    openssl ca -batch -notext -config "$work/conf" -extensions "$2" -startdate 20200101000000Z -enddate "$3" \
        -in "$work/$1.csr" -out "$1.pem" "${@:4}" 2>/dev/null
}

make ca authority 21200101000000Z -selfsign -keyfile ca.key
for name in good other published; do
    make "$name" "$name" 21200101000000Z -cert ca.pem -keyfile ca.key
done
make expired expired 20200102000000Z -cert ca.pem -keyfile ca.key
rm ca.key
