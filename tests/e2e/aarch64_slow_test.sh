#!/bin/bash
# The NEON units against the plain loops, bit for bit, under emulation. Builds the kernels and their tests by
# hand, with fmt as a header and GoogleTest from its sources, so that no ARM package of a library is needed.
set -euo pipefail
source_dir=$2
work=$3

compiler=aarch64-linux-gnu-g++
for tool in $compiler qemu-aarch64-static; do
  command -v $tool >/dev/null && continue
  echo "skipped: $tool is missing (packages g++-aarch64-linux-gnu, qemu-user-static)"
  exit 77
done
googletest=/usr/src/googletest
if [[ ! -d $googletest/googlemock || ! -f /usr/include/fmt/format.h ]]; then
  echo "skipped: the sources of GoogleTest or the headers of fmt are missing (packages googletest, libfmt-dev)"
  exit 77
fi

rm -rf "$work"
mkdir -p "$work/include"
# Not -I/usr/include: the compiler's own system headers must stay those of ARM.
ln -s /usr/include/fmt "$work/include/fmt"

cat >"$work/flags" <<END
-std=c++20 -O2 -Wall -Wextra -ffp-contract=off -DFMT_HEADER_ONLY
-I"$source_dir" -isystem "$work/include"
-isystem $googletest/googletest/include -isystem $googletest/googlemock/include
-I$googletest/googletest -I$googletest/googlemock
END
sources=("$source_dir"/bitfed/bits/*.cc "$source_dir"/bitfed/bits/isa/*.cc
  "$source_dir"/bitfed/base/{names,random}.cc
  "$source_dir"/bitfed/nn/{kernels,mlp,mlp_trainer,layer,convolution,convolution_geometry,dense,network}.cc
  "$source_dir"/bitfed/nn/{norm_parameters,batch_norm,pooled_norm,average_pool,border,sequence,residual_block}.cc
  "$source_dir"/bitfed/nn/{rotation,rotated_weights,binary_convolution,sign_activation}.cc
  "$source_dir"/bitfed/nn/{folded_norm,binary_kernels,sign_filters,packed_network}.cc
  "$source_dir"/bitfed/nn/isa/*.cc
  "$source_dir"/tests/bits/{kernels,bit_matrix}_test.cc "$source_dir"/tests/base/random_test.cc
  "$source_dir"/tests/nn/{kernels,mlp_trainer,network,rotation,rotated_weights,sign_activation}_test.cc
  "$source_dir"/tests/nn/{binary_kernels,packed_network,convolution,binary_convolution,residual_block}_test.cc
  "$source_dir"/tests/test_main.cc
  $googletest/googletest/src/gtest-all.cc $googletest/googlemock/src/gmock-all.cc)
printf '%s\0' "${sources[@]}" | xargs -0 -P "$(nproc)" -I{} \
  sh -c '"$0" @"$1/flags" -c -o "$1/$(echo "$2" | tr / _).o" "$2"' $compiler "$work" {}
$compiler -o "$work/kernels_test" "$work"/*.o -pthread

emulate=(qemu-aarch64-static -L /usr/aarch64-linux-gnu)
# Death tests start the program anew, which the emulator cannot.
"${emulate[@]}" "$work/kernels_test" --gtest_brief=1 --gtest_filter='-*DeathTest*'
# Read whole: a pipe that grep -q closes early would count as a failure.
tests=$("${emulate[@]}" "$work/kernels_test" --gtest_list_tests)
grep -q '/neon' <<<"$tests" ||
  { echo "the NEON unit was not tested"; exit 1; }
