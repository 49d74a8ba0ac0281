"""Writes data and recipes small enough for tests: tiny_data.py FOLDER

FOLDER/data/mnist: IDX images of 8 x 8 in which the class is where a bright square stands; FOLDER/data/fashion-mnist: the
same of 16 x 16, as networks need; FOLDER/table.csv: two numbers and a class;
FOLDER/data/cifar-10-batches-bin: squares in colour, by one of ten places;
FOLDER/{one-shot,two-exchanges,fedtm,table,people,network,colour,composite}.toml.
"""

import gzip
import os
import random
import struct
import sys

folder = sys.argv[1]
draw = random.Random(1)


def write(name, content):
    path = os.path.join(folder, name)
    os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
    with open(path, "wb") as file:
        file.write(content if isinstance(content, bytes) else content.encode())


def write_idx(part, count, name="mnist", side=8):
    images = bytearray(struct.pack(">IIII", 0x803, count, side, side))
    labels = bytearray(struct.pack(">II", 0x801, count))
    for _ in range(count):
        label = draw.randrange(4)
        labels.append(label)
        for y in range(side):
            for x in range(side):
                inside = 2 * y // side == label // 2 and 2 * x // side == label % 2
                images.append(200 if inside != (draw.randrange(10) == 0) else 10)
    write(f"data/{name}/{part}-images-idx3-ubyte.gz", gzip.compress(bytes(images)))
    write(f"data/{name}/{part}-labels-idx1-ubyte.gz", gzip.compress(bytes(labels)))


def recipe(name, data, model, method, more=""):
    write(f"{name}.toml", f"""name = "{name}"
seed = 5
{more}
[data]
{data}

[model]
{model}

[method]
name = "{method}"

[client]
epochs = 3
""")


write_idx("train", 400)
write_idx("t10k", 120)
rows = ["person,height,weight,kind"]
for i in range(200):
    kind = draw.randrange(2)
    rows.append(f"p{i // 50},{draw.gauss(kind * 3, 1):.4f},{draw.gauss(-kind * 2, 1):.4f},{'cat' if kind else 'dog'}")
write("table.csv", "\n".join(rows) + "\n")

images = 'name = "mnist"\npartition = { kind = "iid", clients = 4 }\nevaluate = "second-half"'
ctm = 'name = "ctm"\nclauses = 20\nthreshold = 50\npatch = [4, 4]'
recipe("one-shot", images, ctm, "fedtm-bank")
recipe("two-exchanges", images, ctm, "fedtm-bank", "rounds = 2")
recipe("fedtm", images, ctm, "fedtm", "rounds = 4")
recipe("people", 'file = "table.csv"\nlabel = "kind"\nperson = "person"\npartition = { kind = "column" }',
       'name = "mlp"\nhidden = [8, 8]', "fed-bin-mlp", "rounds = 6\n[federation]\nclients_per_round = 3")
recipe("table", 'file = "table.csv"\nlabel = "kind"\nperson = "person"\npartition = { kind = "column" }',
       'name = "tm"\nclauses = 10', "fedtmos")
write_idx("train", 64, "fashion-mnist", 16)
write_idx("t10k", 64, "fashion-mnist", 16)
recipe("network", images.replace("mnist", "fashion-mnist"), 'name = "cnn4"\nwidth = 16', "fedbnn",
       'rounds = 2\n[federation]\nclients_per_round = 3')


def write_cifar(name, count):
    content = bytearray()
    for _ in range(count):
        label = draw.randrange(10)
        content.append(label)
        for channel in range(3):
            for y in range(32):
                for x in range(32):
                    inside = y // 7 == label // 4 and x // 9 == label % 4
                    content.append((30 * channel + 120 if inside else 30) + draw.randrange(60))
    write(f"data/cifar-10-batches-bin/{name}.bin", bytes(content))


for batch in range(1, 6):
    write_cifar(f"data_batch_{batch}", 8)
write_cifar("test_batch", 20)
colour = images.replace("mnist", "cifar10").replace("clients = 4", "clients = 2")
recipe("colour", colour, 'name = "cnn4"\nwidth = 16', "fedbnn", "rounds = 1")
recipe("composite", colour, """name = "ctm-composite"

[[model.member]]
booleanize = { kind = "adaptive-gaussian", window = 11, offset = 2 }
clauses = 20
threshold = 40
patch = [10, 10]

[[model.member]]
booleanize = { kind = "colour-thermometer", levels = 8 }
clauses = 20
threshold = 30
patch = [3, 3]""", "fedtm-bank")
