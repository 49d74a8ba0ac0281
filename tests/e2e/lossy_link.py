"""A slow, lossy wire between two network namespaces, for kernels that cannot emulate one.
lossy_link.py NAMESPACE ADDRESS NAMESPACE ADDRESS SECONDS LOSS
Each namespace gets a device 'wire' with its address (CIDR). Every packet takes SECONDS and is lost with probability LOSS.
Prints 'ready', then carries packets until it is ended; how many it carried and lost is printed every second."""
import ctypes
import fcntl
import heapq
import os
import random
import select
import struct
import subprocess
import sys
import time

TUNSETIFF, IFF_TUN, IFF_NO_PI, CLONE_NEWNET = 0x400454CA, 1, 0x1000, 0x40000000
libc = ctypes.CDLL(None, use_errno=True)


def enter(path):
    with open(path) as namespace:
        if libc.setns(namespace.fileno(), CLONE_NEWNET) != 0:
            sys.exit(f"{path}: {os.strerror(ctypes.get_errno())}")


def open_wire(namespace, address):
    enter(f"/var/run/netns/{namespace}")
    wire = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(wire, TUNSETIFF, struct.pack("16sH22x", b"wire", IFF_TUN | IFF_NO_PI))
    subprocess.run(["ip", "addr", "add", address, "dev", "wire"], check=True)
    subprocess.run(["ip", "link", "set", "wire", "up"], check=True)
    return wire


def main():
    name_a, address_a, name_b, address_b, seconds, loss = sys.argv[1:]
    seconds, loss = float(seconds), float(loss)
    wires = [open_wire(name_a, address_a), open_wire(name_b, address_b)]
    draw = random.Random(1)
    on_the_way = []  # (due, number, to, packet)
    carried = lost = 0
    said = time.monotonic()
    print("ready", flush=True)
    while True:
        now = time.monotonic()
        while on_the_way and on_the_way[0][0] <= now:
            _, _, to, packet = heapq.heappop(on_the_way)
            try:
                os.write(wires[to], packet)
            except OSError:
                pass  # the device is down: a partition
        if now - said > 1:
            said = now
            print(f"{carried} packets carried, {lost} lost", flush=True)
        wait = min(1, on_the_way[0][0] - now) if on_the_way else 1
        for wire in select.select(wires, [], [], max(0, wait))[0]:
            try:
                packet = os.read(wire, 65536)
            except OSError:
                time.sleep(0.01)
                continue
            if draw.random() < loss:
                lost += 1
                continue
            carried += 1
            heapq.heappush(on_the_way, (time.monotonic() + seconds, carried, 1 - wires.index(wire), packet))


main()
