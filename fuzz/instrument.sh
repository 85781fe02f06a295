#!/bin/sh
# Stands before the compiler (RUSTC_WRAPPER) while the fuzz targets are built: it has the product's own crates tell
# libFuzzer which of their code an input reached. The dependencies are compiled as always, so that what the tests have
# built of them is used again.
case " $* " in
*" --crate-name hookstead"*) ;;
*) exec "$@" ;;
esac
exec "$@" \
    -Cpasses=sancov-module \
    -Cllvm-args=-sanitizer-coverage-level=4 \
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters \
    -Cllvm-args=-sanitizer-coverage-pc-table \
    -Cllvm-args=-sanitizer-coverage-trace-compares
