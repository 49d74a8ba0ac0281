"""Checks a file against the description of the safetensors format, and with its library if there is one."""

import json
import struct
import sys

BITS = {"BOOL": 8, "U8": 8, "I8": 8, "U16": 16, "I16": 16, "F16": 16, "BF16": 16,
        "U32": 32, "I32": 32, "F32": 32, "U64": 64, "I64": 64, "F64": 64}


def check(condition, text):
    if not condition:
        sys.exit(f"{sys.argv[1]}: {text}")


def check_by_hand(content):
    (size,) = struct.unpack("<Q", content[:8])
    check(8 + size <= len(content), "the header is longer than the file")
    check(content[8:9] == b"{", "the header does not begin with a brace")
    header = json.loads(content[8:8 + size])
    metadata = header.pop("__metadata__", {})
    check(all(isinstance(value, str) for value in metadata.values()), "metadata that is no text")
    end = 0
    for name, tensor in sorted(header.items(), key=lambda item: item[1]["data_offsets"]):
        first, last = tensor["data_offsets"]
        count = 1
        for length in tensor["shape"]:
            count *= length
        check(first == end, f"{name}: a hole or an overlap before it")
        check(8 * (last - first) == count * BITS[tensor["dtype"]], f"{name}: its size is not its shape's")
        end = last
    check(8 + size + end == len(content), "bytes behind the last tensor")
    check(header, "no tensors")
    return header


def check_with_library(path, header):
    try:
        from safetensors.numpy import load_file
    except ImportError:
        print("the safetensors library is not installed: checked by hand only")
        return
    tensors = load_file(path)
    check(set(tensors) == set(header), "the library sees other tensors")
    for name, tensor in tensors.items():
        check(list(tensor.shape) == header[name]["shape"], f"{name}: the library sees another shape")


with open(sys.argv[1], "rb") as file:
    found = check_by_hand(file.read())
check_with_library(sys.argv[1], found)
print(f"{sys.argv[1]}: {len(found)} tensors")
