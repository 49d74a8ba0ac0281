#!/usr/bin/env python3
"""Writes the small seed inputs of the fuzz targets, next to this script."""

import gzip
import hashlib
import io
import json
import math
import pathlib
import struct
import tarfile
import zipfile
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


def npy(descr, shape, data, order=False):
    text = f"{{'descr': '{descr}', 'fortran_order': {order}, 'shape': {shape}, }}".encode()
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text + data


def npz(arrays, method):
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", method) as archive:
        for name, data in arrays.items():
            archive.writestr(name + ".npy", data)
    return stream.getvalue()


def png(width, height, depth, colour, rows, palette=b""):
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    header = struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, 0)
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + (chunk(b"PLTE", palette) if palette else b"")
            + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))


def archive(form):
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w", format=form) as tar:
        for name, data in (("d/a.bin", b"hello"), ("d/b.txt", b"x" * 600)):
            info = tarfile.TarInfo(name)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    return stream.getvalue()[:4096]


def floats(*values):
    return struct.pack(f"<{len(values)}f", *values)


def save_state(target, name, texts, parts):
    """As a file, and as lines; see fuzzed_state.h."""
    save(target, name + ".file", b"\0" + tensors(parts, texts))
    lines = [f"@{key} {value}" for key, value in texts.items()]
    lines += [" ".join([part, dtype, *map(str, shape)]) for part, dtype, shape, _ in parts]
    save(target, name + ".lines", "\n".join(lines).encode() + b"\n\n" + b"".join(part[3] for part in parts))


def mlp(binary, widths):
    columns = widths[0]
    texts = {"bitfed.format": "1", "bitfed.kind": "mlp",
             "bitfed.mlp": json.dumps({"widths": widths, "binary": binary}),
             "bitfed.scaling": json.dumps({"offset": [0.5] * columns, "factor": [2.0] * columns, "limit": 2})}
    parts = []
    for i, (inputs, outputs) in enumerate(zip(widths, widths[1:])):
        count = inputs * outputs
        size = (count + 7) // 8
        if binary:
            weights = ("U8", [size], (0x5A5A5A5A & (1 << count) - 1).to_bytes(size, "little"))
        else:
            weights = ("F32", [inputs, outputs], floats(*(0.25 * j - 1 for j in range(count))))
        parts += [(f"layers.{i}.weights", *weights),
                  (f"layers.{i}.factor", "F32", [outputs], floats(*[0.5] * outputs)),
                  (f"layers.{i}.shift", "F32", [outputs], floats(*[-0.25] * outputs))]
    return texts, parts


def tsetlin(classes, members):
    """`members`: booleanizer, height, width, planes, patch height and width, clauses."""
    parts, described = [], []
    for i, (booleanizer, *sizes, clauses) in enumerate(members):
        names = ("height", "width", "planes", "patch_height", "patch_width")
        described.append({"booleanizer": booleanizer, **dict(zip(names, sizes)), "clauses": clauses})
        height, width, planes, patch_height, patch_width = sizes
        literals = 2 * (height - patch_height + width - patch_width + patch_height * patch_width * planes)
        row = (literals + 7) // 8
        rows = classes * clauses
        parts += [(f"members.{i}.actions", "U8", [classes, clauses, row], (b"\1" + bytes(row - 1)) * rows),
                  (f"members.{i}.weights", "I32", [classes, clauses], struct.pack("<i", -3) * rows),
                  (f"members.{i}.bias", "I32", [classes], struct.pack("<i", 2) * classes),
                  (f"members.{i}.clamp", "I32", [], struct.pack("<i", 50)),
                  (f"members.{i}.scale", "F32", [], floats(50))]
    return {"bitfed.format": "1", "bitfed.kind": "tsetlin", "bitfed.classes": str(classes),
            "bitfed.members": json.dumps(described)}, parts


def tsetlin_uploads():
    """Uploads of a client with two classes of three; clauses as tsetlin_messages_fuzz.cc codes them."""
    def clauses(count, weight):
        return b"".join(bytes([1 << i % 6]) + struct.pack("<I", weight | 1 << 24) for i in range(count))

    def upload(means, weight, familiar_mean):
        parts = [("classes", "U16", [2], struct.pack("<HH", 0, 2)), ("samples", "U32", [2], struct.pack("<II", 5, 300)),
                 ("0.clauses", "U8", [80], clauses(16, weight)), ("0.calibration", "F32", [2, 3], floats(*means)),
                 ("0.familiar", "U8", [10], clauses(2, weight)), ("0.familiar_mean", "F32", [1], floats(familiar_mean))]
        return {}, parts

    def margins(classes, samples, *values):
        labels = ("classes", "U16", [len(classes)], struct.pack(f"<{len(classes)}H", *classes))
        counts = ("samples", "U32", [len(classes)], struct.pack("<I", samples) * len(classes))
        names = zip(("rivals", "margins", "deviations"), values)
        return {}, [labels, counts] + [(name, "F32", [len(classes), 3], floats(*numbers)) for name, numbers in names]

    return {"margins": margins((0, 2), 300, (0, 0.75, 0.25, 1, 0, 0), (0, 0.5, -0.2, 0.7, 0, 0), (0, 0.3, 0.1, 0.4, 0, 0)),
            "margins-far": margins((1,), 0xFFFFFFFF, (0.5, 0, 0.5), (-3e38, 0, 3e38), (3e38, 0, 0)),
            "plain": upload((30, -20, -10, 25, -30, -25), 7, 12), "heavy": upload((1e8, -1e8, 1e8, 1, 0, 0), 0xFFFFFF, 0),
            "flat": upload((1, 0, 5, -1, 2, 2), 1, 3e7)}


def norm_lines(name, channels):
    return [f"{name}.{what} F32 1 {channels}" for what in ("scale", "shift", "mean", "variance")]


def cnn4_lines(static):
    lines, channels = [], 1
    for i in range(4):
        filters = 16 << i
        if static and i > 0:
            lines.append(f"blocks.{i}.signs.mean F32 1 1")
        lines.append(f"blocks.{i}.convolution.weights U8 {(9 * channels * filters + 7) // 8}")
        lines += norm_lines(f"blocks.{i}.norm", filters)
        channels = filters
    return lines + [f"dense.weights F32 {channels} 3"]


def resnet10_lines(static):
    lines, channels = ["stem.weights F32 9 16"] + norm_lines("stem.norm", 16), 16
    for i in range(4):
        filters = 16 << i
        for part, inputs in (("first", 9 * channels), ("second", 9 * filters), ("shortcut", channels)):
            if part == "shortcut" and i == 0:
                continue
            if static and part != "shortcut":
                lines.append(f"blocks.{i}.{part}.signs.mean F32 1 1")
            lines.append(f"blocks.{i}.{part}.convolution.weights U8 {inputs * filters // 8}")
            lines += norm_lines(f"blocks.{i}.{part}.norm", filters)
        channels = filters
    return lines + norm_lines("norm", channels) + [f"dense.weights F32 {channels} 3", "dense.bias F32 1 3"]


def network_lines(name, static):
    """The smallest binary network of a kind, as lines; most of its data are zeros that need not be there."""
    height, width = (17, 16) if name == "cnn4" else (3, 5)
    described = {"name": name, "binary": True, "width": 16, "height": height, "image_width": width, "channels": 1,
                 "classes": 3, "mean": [0.5], "deviation": [0.25]}
    if static:
        described["deploy"] = "static"
    texts = {"bitfed.format": "1", "bitfed.kind": "network", "bitfed.network": json.dumps(described)}
    lines = [f"@{key} {value}" for key, value in texts.items()]
    lines += cnn4_lines(static) if name == "cnn4" else resnet10_lines(static)
    return "\n".join(lines).encode() + b"\n\n" + bytes(range(7, 25)) + floats(*(0.1 * i for i in range(64)))


def models():
    small = mlp(True, [3, 5, 2])
    claims = {"bitfed.mlp": '{"widths": [3, 65535, 65535, 2], "binary": true}'}
    threshold = {"kind": "threshold", "level": 75}
    colours = {"kind": "colour-thermometer", "levels": 3}
    gaussian = {"kind": "adaptive-gaussian", "window": 3, "offset": 2}
    quantile = {"kind": "quantile", "bins": 4, "cuts": [[0.5, 1.5, 2.5], [], [-1.25]]}
    return {"mlp-binary": small,
            "mlp-full": mlp(False, [3, 4, 2]),
            "mlp-deep": mlp(True, [1, 2, 3, 2, 1]),
            "mlp-claims": ({**small[0], **claims}, small[1]),
            "tm-table": tsetlin(2, [(quantile, 1, 1, 4, 1, 1, 3)]),
            "ctm": tsetlin(2, [(threshold, 6, 5, 1, 3, 2, 2)]),
            "ctm-composite": tsetlin(2, [(colours, 4, 4, 3, 2, 2, 2), (gaussian, 4, 4, 1, 3, 3, 1)]),
            "tm-claims": tsetlin(1, [(threshold, 4096, 4096, 1, 1, 1, 0)])}


def messages():
    norms = [0.1] * 7 + [0.2] * 7 + [0.9] * 7
    samples = ("samples", "U32", [], struct.pack("<I", 40))
    halves = b"".join(floats(norm)[2:] for norm in norms)
    scaling = [("scaling", "F32", [2, 3], floats(0, 1, 2, 0.5, 1, 2)), ("limit", "F32", [], floats(2))]
    latent = [("weights", "F32", [25], floats(*(0.08 * i - 1 for i in range(25)))),
              ("norms", "F32", [3, 7], floats(*norms))]
    signs = [("signs", "U8", [4], b"\xa5\x5a\xc3\1"), ("norms", "BF16", [3, 7], halves)]
    ranges = ("ranges", "F32", [2, 3], floats(-1, 0, 5, 1, 0, 7.5))
    parts = {"ranges": [ranges, samples], "broadcast": scaling + latent, "latent": [samples] + latent,
             "bits": [samples] + signs, "everything": [ranges, samples] + scaling + signs,
             "infinite": [scaling[0], ("limit", "F32", [], floats(math.inf))]}
    return {name: ({}, part) for name, part in parts.items()}


def network_uploads():
    """Of a CNN4 of width 16 on 16 x 16 images, two classes: lines without data but for the first tensors'."""
    samples = "samples U32"
    norms = [f"blocks.{i}.norm.{name} F32 1 {16 << i}"
             for i in range(4) for name in ("scale", "shift", "mean", "variance")]
    counts = [144, 4608, 18432, 73728]
    names = [f"blocks.{i}.convolution.weights" for i in range(4)] + ["dense.weights"]
    bits = [f"{name} U8 {count // 8}" for name, count in zip(names, counts + [256])]
    factors = [f"{name}.factors F32 {count}" for name, count in zip(names[1:4], (196, 640, 2304))]
    full = ["blocks.0.convolution.weights F32 9 16", "dense.weights F32 128 2"]
    return {"fedbat": ([samples] + [f"{name}.step F32" for name in names] + bits + norms,
                       struct.pack("<I", 40) + floats(*[0.01] * 5)),
            "fedmud": ([samples, "round U32"] + factors + full + norms,
                       struct.pack("<II", 40, 1) + floats(*[0.001] * 400))}


def field(number, value):
    """One of protobuf's: a number, or bytes."""
    if isinstance(value, int):
        return bytes([number << 3, value])
    return bytes([number << 3 | 2, len(value)]) + value


def sessions():
    """Messages of a client, each after its length; see session_fuzz.cc."""
    hello = field(1, field(1, 1) + field(2, 1) + field(5, 0))
    ready = field(2, field(1, 9))
    update = b"bob's update"
    offer = field(3, field(1, 1) + field(3, len(update)) + field(4, hashlib.sha256(update).hexdigest().encode()))
    chunk = field(4, update)
    failed = field(5, field(1, 1) + field(2, b"no"))
    row = lambda *messages: b"".join(struct.pack("<H", len(message)) + message for message in messages)
    return {
        "good": row(hello, ready, offer, chunk),
        "halves": row(hello, ready, offer, field(4, update[:5]), field(4, update[5:])),
        "other-bytes": row(hello, ready, offer, field(4, update[::-1])),
        "failed": row(hello, ready, failed, offer, chunk),
        "unready": row(hello, offer, chunk, offer),
        "wordless": row(ready, hello, chunk, field(4, b""), b""),
    }


def rank_messages():
    """See bitfed/mpi/messages.cc."""
    def text(data):
        return struct.pack("<Q", len(data)) + data

    client = struct.pack("<IQQd?Q", 7, 3, 9, 0.25, True, 5) + text(b"upload") + text(b"kept") + struct.pack("<??d", True, True, 0.5)
    return {
        "number": struct.pack("<BI", 1, 5),
        "work": struct.pack("<BQI", 3, 1, 7) + text(b"kept"),
        "evaluate": struct.pack("<B5Q", 4, 0, 5, 2, 3, 100),
        "hello": b"\x10" + text(b"0.1.0") + text(b"node7") + struct.pack("<II", 2, 1),
        "ready": b"\x07" + text(b"seed = 1") + text(b"") + b"\1\0" + text(b"no"),
        "results": struct.pack("<Bd?Q", 8, 1.5, True, 1) + client,
        "confusion": struct.pack("<B6Q", 9, 2, 1, 2, 3, 4, 0),
        "progress": struct.pack("<BId", 10, 7, 0.5),
        "failed": b"\x0b\x01" + text(b"out of memory"),
        "round": struct.pack("<BQIQd", 2, 9, 7, 1000, 1.0),
        "part": struct.pack("<BQ", 15, 9) + text(tensors([
            ("clients", "U64", [], struct.pack("<Q", 2)), ("samples", "U64", [], struct.pack("<Q", 9)),
            ("norms", "F64", [0], b""), ("sums.0", "U8", [48], bytes(48)), ("sums.1", "U8", [16], bytes(16))])),
    }


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

    save("toml", "recipe.toml", b"name = 'n' # c\nseed = 3\n[data.partition]\nkind = \"iid\"\n[model]\npatch = [10, 10]\n")
    save("toml", "values.toml", b"a = [0x1f, 0b1, 1_0, -1.5e-3, inf, true, {b.c = 1}]\nd.e = \"\\u00e9\\n\"\n[[f]]\n[[f]]\n[f.g]\n")
    save("toml", "strings.toml", b"a = \"\"\"\nx \\\n  y\"\"\"\nb = '''\nz'''\n'q.r' = ''\n")

    save("tar", "ustar.tar", archive(tarfile.USTAR_FORMAT))
    save("tar", "gnu.tar", archive(tarfile.GNU_FORMAT))
    save("tar", "pax.tar", archive(tarfile.PAX_FORMAT))

    x = npy("|u1", "(2, 1, 2)", bytes(4))
    y = npy("<i4", "(2,)", bytes(8))
    save("npy", "bytes", x)
    save("npy", "fortran", npy("<f4", "(2, 2)", bytes(16), True))
    save("npy", "strings", npy("<U2", "(2,)", "abcd".encode("utf-32-le")))
    save("npz", "stored", npz({"x": x, "y": y}, zipfile.ZIP_STORED))
    save("npz", "deflated", npz({"x": x, "y": y}, zipfile.ZIP_DEFLATED))
    save("image", "grey.png", png(2, 1, 8, 0, b"\0\1\2"))
    save("image", "palette.png", png(2, 1, 8, 3, b"\0\1\0", bytes(range(6))))
    save("image", "deep.png", png(1, 1, 16, 6, bytes(9)))
    for example in sorted((ROOT.parent.parent / "data" / "images").glob("*.jpg")):
        save("image", example.name, example.read_bytes())
    save("leaf", "two", b'{"users":["a","b"],"user_data":{"a":{"x":[[0,1]],"y":[1]},"b":{"x":[[0.5,1]],"y":["k"]}}}')

    save("safetensors", "empty", tensors([]))
    save("safetensors", "two", tensors([("w", "F32", [2, 1], bytes(8)), ("b", "U8", [3], b"abc")], {"kind": "test"}))
    save("safetensors", "scalar", tensors([("n", "I64", [], bytes(8)), ("none", "U16", [0], b"")]))
    entry = '{"dtype":"U8","shape":[0],"data_offsets":[0,0]}'
    for name, text in {
            "spaced": ' {\r\n\t"w" : { "shape" : [ 0 , 3 ] , "data_offsets":[0 ,0], "dtype" :"U8" } } ',
            "escapes": '{"\\u0077\\uD83D\\ude00\\n\\"":%s,"é€😀":%s,"__metadata__":{"\\/":"\\u0000"}}' % (entry, entry),
            "surrogate": '{"\\ud800":%s}' % entry,
            "twice": '{"w":%s,"\\u0077":%s}' % (entry, entry),
            "numbers": '{"w":{"dtype":"U8","shape":[18446744073709551615,1.0,-1,1e2,01],"data_offsets":[0,0]}}',
            "objects": '{"a":[' + ",".join(["{}"] * 300) + "]}"}.items():
        save("safetensors", name, struct.pack("<Q", len(text.encode())) + text.encode())

    for name, (texts, parts) in models().items():
        save_state("model", name, texts, parts)
    for name, (texts, parts) in messages().items():
        save_state("mlp_messages", name, texts, parts)
    for name, (texts, parts) in tsetlin_uploads().items():
        save_state("tsetlin_messages", name, texts, parts)
    for name in ("cnn4", "resnet10"):
        for static in (False, True):
            save("model", f"{name}{'-static' if static else ''}.lines", network_lines(name, static))
    for name, (lines, data) in network_uploads().items():
        save("network_messages", name + ".lines", "\n".join(lines).encode() + b"\n\n" + data)
    save("model", "golden", b"\0" + (ROOT.parent.parent / "golden" / "tsetlin-1.safetensors").read_bytes())

    # First which message; see secure_messages_fuzz.cc.
    keys = struct.pack("<I", 1) + bytes(range(64)) + struct.pack("<I", 2) + b"me" + struct.pack("<I", 3) + b"yes"
    save("secure_messages", "keys", b"\0" + keys)
    save("secure_messages", "key_list", b"\1" + struct.pack("<III", 2, 1, 2) + struct.pack("<I", 1) + keys)
    save("secure_messages", "sealed", b"\2" + struct.pack("<III", 1, 3, 4) + b"seal")
    sent = bytes(range(64)) + struct.pack("<II", 1, 3) + bytes(range(48)) + struct.pack("<I", 4) + b"seal"
    save("secure_messages", "sent", b"\x09" + sent)
    for kind in (3, 7):
        save("secure_messages", f"numbers-{kind}", bytes([kind]) + struct.pack("<IIII", 3, 1, 2, 3))
    save("secure_messages", "opened", b"\4" + struct.pack("<II", 1, 3) + bytes(range(32)))
    for kind in range(11, 15):  # edits of an honest message: place, value
        save("secure_messages", f"edits-{kind}", bytes([kind]) + struct.pack("<HB", 90, 7))
    save("secure_messages", "sum", b"\x0afields U32 2 2\nelements U8 3\n\n" + struct.pack("<IIII", 2, 8, 1, 5) + b"ab\x11")

    # First the layout and what to do, then the number of clauses; see clauses_fuzz.cc.
    save("clauses", "message", bytes([0, 1]) + bytes.fromhex("f3fffffffffc0000"))
    save("clauses", "colours", bytes([2, 5]) + bytes(range(0, 250, 5)))
    save("clauses", "unsigned", bytes([5, 3]) + bytes(20))
    save("clauses", "literals", bytes([9, 0]) + bytes(i * 7 % 256 for i in range(200)))
    for name, data in sessions().items():
        save("session", name, data)
    # The honest request, and one with an edit of each kind; see renewal_fuzz.cc.
    save("renewal", "honest", b"\1")
    save("renewal", "text", b"\0-----BEGIN CERTIFICATE-----\nMAA=\n-----END CERTIFICATE-----\n")
    for kind in range(8):
        save("renewal", f"edit-{kind}", bytes([1, kind, 40, 0, 2]))
    for name, data in rank_messages().items():
        save("rank_messages", name, data)


if __name__ == "__main__":
    main()
