#!/bin/bash
# The NEON units against the plain loops, and the engine of deployed models behind its C interface, bit for bit,
# under emulation. Builds them and their tests by hand, with fmt and JSON as headers and GoogleTest from its sources,
# so that no ARM package of a library is needed.
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
if [[ ! -d $googletest/googlemock || ! -f /usr/include/fmt/format.h || ! -f /usr/include/nlohmann/json.hpp ]]; then
  echo "skipped: sources of GoogleTest or headers are missing (packages googletest, libfmt-dev, nlohmann-json3-dev)"
  exit 77
fi

rm -rf "$work"
mkdir -p "$work/include"
# Not -I/usr/include: the compiler's own system headers must stay those of ARM.
ln -s /usr/include/fmt /usr/include/nlohmann "$work/include/"

cat >"$work/flags" <<END
-std=c++20 -O2 -Wall -Wextra -ffp-contract=off -ffunction-sections -DFMT_HEADER_ONLY
-DBITFED_TESTS_DIR=\"$source_dir/tests\"
-I"$source_dir" -isystem "$work/include"
-isystem $googletest/googletest/include -isystem $googletest/googlemock/include
-I$googletest/googletest -I$googletest/googlemock
END
sources=("$source_dir"/bitfed/{bits,bits/isa,model,tsetlin,tsetlin/machine,zoo,zoo/network,zoo/architectures}/*.cc "$source_dir"/bitfed/nn/*{,/isa}/*.cc
  "$source_dir"/bitfed/base/{byte_io,hash/digest,names,hash/random,thread_pool,utf8}.cc
  "$source_dir"/bitfed/data/{booleanize/booleanizer,booleanize/booleanizers,dataset,samples}.cc
  "$source_dir"/bitfed/edge/c_api.cc
  "$source_dir"/tests/bits/{kernels,bit_matrix}_test.cc "$source_dir"/tests/base/random_test.cc
  "$source_dir"/tests/nn/{kernels,pair_kernels,mlp_trainer,network,rotation,rotation_search,rotated_weights,sign_activation}_test.cc
  "$source_dir"/tests/nn/{binary_kernels,convolution,binary_convolution,residual_block,sign_thresholds}_test.cc
  "$source_dir"/tests/zoo/{packed_builder,golden_model}_test.cc "$source_dir"/tests/edge/c_api_test.cc
  "$source_dir"/tests/test_main.cc
  $googletest/googletest/src/gtest-all.cc $googletest/googlemock/src/gmock-all.cc)
printf '%s\0' "${sources[@]}" | xargs -0 -P "$(nproc)" -I{} \
  sh -c '"$0" @"$1/flags" -c -o "$1/$(echo "$2" | tr / _).o" "$2"' $compiler "$work" {}
# What reads recipes is left out, and with it a library for TOML.
$compiler -o "$work/kernels_test" "$work"/*.o -pthread -Wl,--gc-sections

emulate=(qemu-aarch64-static -L /usr/aarch64-linux-gnu)
# Death tests start the program anew, which the emulator cannot.
"${emulate[@]}" "$work/kernels_test" --gtest_brief=1 --gtest_filter='-*DeathTest*'
# Read whole: a pipe that grep -q closes early would count as a failure.
tests=$("${emulate[@]}" "$work/kernels_test" --gtest_list_tests)
grep -q '/neon' <<<"$tests" ||
  { echo "the NEON unit was not tested"; exit 1; }
