#!/usr/bin/env python3
"""Writes the small seed inputs of the fuzz targets, next to this script."""

import gzip
import io
import json
import pathlib
import struct
import tarfile
import zlib

ROOT = pathlib.Path(__file__).parent / "corpus"


def save(target, name, data):
    folder = ROOT / target
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(data)


def element(kind, data):
    return struct.pack("<II", kind, len(data)) + data + b"\0" * (-len(data) % 8)


def small(kind, data):
    return struct.pack("<HH", kind, len(data)) + data.ljust(4, b"\0")


def matrix(name, sides, array_class, storage, data):
    return element(14, element(6, struct.pack("<II", array_class, 0))
                   + element(5, struct.pack(f"<{len(sides)}i", *sides))
                   + small(1, name) + (small if len(data) <= 4 else element)(storage, data))


def packed(data):
    stream = zlib.compress(data)
    return struct.pack("<II", 15, len(stream)) + stream


def tensors(entries, metadata=None):
    header, blob = {}, b""
    if metadata:
        header["__metadata__"] = metadata
    for name, dtype, shape, data in entries:
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [len(blob), len(blob) + len(data)]}
        blob += data
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + blob


def archive(form):
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w", format=form) as tar:
        for name, data in (("d/a.bin", b"hello"), ("d/b.txt", b"x" * 600)):
            info = tarfile.TarInfo(name)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    return stream.getvalue()[:4096]


def main():
    images = struct.pack(">IIII", 0x803, 2, 2, 3) + bytes(range(12))
    labels = struct.pack(">II", 0x801, 3) + bytes([1, 2, 3])
    for name, data in (("images", images), ("labels", labels)):
        save("idx", name, data)
        save("idx", name + ".gz", gzip.compress(data, mtime=0))
        save("gzip", name + ".gz", gzip.compress(data, mtime=0))
    save("gzip", "two.gz", gzip.compress(b"one", mtime=0) + gzip.compress(b"two", mtime=0))
    save("gzip", "zeros.gz", gzip.compress(b"\0" * 5000, mtime=0))

    head = b"MATLAB 5.0 MAT-file".ljust(124) + b"\x00\x01IM"
    pixels = matrix(b"X", (32, 32, 3, 1), 9, 2, bytes(3072))
    label = matrix(b"y", (1, 1), 9, 2, b"\x0a")
    double = matrix(b"y", (2, 1), 6, 9, struct.pack("<dd", 10, 3))
    save("mat", "plain.mat", head + pixels + label)
    save("mat", "packed.mat", head + packed(pixels) + packed(label))
    save("mat", "double.mat", head + double)
    save("mat", "bytes.mat", head + matrix(b"y", (3, 3), 6, 2, bytes(range(9))))
    save("mat", "other.mat", head + matrix(b"z", (1, 2), 4, 4, b"a\0b\0") + packed(double))

    save("csv", "plain.csv", b"a,b,l,p,q\n1,2.5,x,1,2\n-3e2,4,y,1,3\n5,6,x,2,2\n")
    save("csv", "quoted.csv", b'\xef\xbb\xbf"a","l"\r\n"1","say ""hi"""\r\n\r\n2,"b,c"\r\n')
    save("csv", "bad.csv", b"a,l\nnan,x\n")
    save("csv", "nulls.csv", b"a,b,l,p,q\n1,,x,1,2\n3,NA,y,1,3\n5,6,null,2,2\n7,8,x,None,1\n9,10,y,2,2\n1,2,y,2,2\n")

    save("tar", "ustar.tar", archive(tarfile.USTAR_FORMAT))
    save("tar", "gnu.tar", archive(tarfile.GNU_FORMAT))
    save("tar", "pax.tar", archive(tarfile.PAX_FORMAT))

    save("safetensors", "empty", tensors([]))
    save("safetensors", "two", tensors([("w", "F32", [2, 1], bytes(8)), ("b", "U8", [3], b"abc")], {"kind": "test"}))
    save("safetensors", "scalar", tensors([("n", "I64", [], bytes(8)), ("none", "U16", [0], b"")]))

    # First the layout and what to do, then the number of clauses; see clauses_fuzz.cc.
    save("clauses", "message", bytes([0, 1]) + bytes.fromhex("f3fffffffffc0000"))
    save("clauses", "colours", bytes([2, 5]) + bytes(range(0, 250, 5)))
    save("clauses", "unsigned", bytes([5, 3]) + bytes(20))
    save("clauses", "literals", bytes([9, 0]) + bytes(i * 7 % 256 for i in range(200)))


if __name__ == "__main__":
    main()
