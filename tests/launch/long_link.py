"""Sends over a long link from rank 0 to rank 1 and back; prints what arrived: HOST1 HOST0.

``trips`` round trips in ms; ``there`` and ``back`` the numbers of frames of a burst, in the order
in which they arrived; ``stream`` the rate of a TCP stream in bit/s, and whether its bytes were
right.
"""

import hashlib
import os
import random
import socket
import sys
import time

PORT, TRIPS, BYTES = 9000, 20, 3 << 20
FRAMES = 80  # no more than the least socket holds while its process does not read
SIZES = [random.Random(7).randint(4, 1400) for _ in range(FRAMES)]
DATA = random.Random(8).randbytes(BYTES)


def burst(udp, peer):
    for number, size in enumerate(SIZES):
        udp.sendto(number.to_bytes(4, "big") + bytes(size - 4), peer)


def arrivals(udp):
    numbers = []
    while len(numbers) < FRAMES:
        try:
            part = udp.recv(2048)
        except TimeoutError:
            break
        numbers.append(int.from_bytes(part[:4], "big"))
    return " ".join(map(str, numbers))


def say(*words):
    sys.stdout.write(" ".join(map(str, words)) + "\n")
    sys.stdout.flush()


def answer(stream, peer):
    """Be rank 0, which the other rank has connected to."""
    trips = []
    for _ in range(TRIPS):
        begin = time.perf_counter()
        udp.sendto(b"?", peer)
        udp.recv(1)
        trips.append(f"{(time.perf_counter() - begin) * 1e3:.3f}")
    say("trips", *trips)
    burst(udp, peer)
    say("back", arrivals(udp))
    stream.recv(1)
    begin = time.monotonic()
    stream.sendall(DATA)
    right = stream.recv(32) == hashlib.sha256(DATA).digest()
    say("stream", round(BYTES * 8 / (time.monotonic() - begin)), right)


def ask(stream, peer):
    """Be rank 1."""
    for _ in range(TRIPS):
        udp.recv(1)
        udp.sendto(b"!", peer)
    burst(udp, peer)
    say("there", arrivals(udp))
    stream.sendall(b"!")
    digest, left = hashlib.sha256(), BYTES
    while left and (part := stream.recv(1 << 16)):
        digest.update(part)
        left -= len(part)
    stream.sendall(digest.digest())


def connect(peer):
    while True:
        try:
            return socket.create_connection(peer, timeout=20)
        except ConnectionRefusedError:
            time.sleep(0.02)


peer = (sys.argv[1 + int(os.environ["PMI_RANK"])], PORT)
udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
udp.bind(("", PORT))
udp.settimeout(5)
if os.environ["PMI_RANK"] == "0":
    answer(socket.create_server(("", PORT)).accept()[0], peer)
else:
    ask(connect(peer), peer)
