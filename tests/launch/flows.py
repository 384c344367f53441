"""Streams bytes between ranks and prints what arrives: FROM:TO,… SECONDS HOST,…"""

import os
import socket
import sys
import threading
import time

socket.setdefaulttimeout(20)  # a flow that does not flow says so
rank = int(os.environ["PMI_RANK"])
pairs = [tuple(map(int, pair.split(":"))) for pair in sys.argv[1].split(",")]
seconds, hosts = float(sys.argv[2]), sys.argv[3].split(",")


def receive(source):
    with socket.create_server(("", 7000 + source)) as server:
        stream, _ = server.accept()
    received, begin = len(stream.recv(1)), time.monotonic()
    while part := stream.recv(1 << 16):
        received += len(part)
    rate = received * 8 / (time.monotonic() - begin)
    # In one write: an unbuffered print writes the end of the line apart, which others may break.
    sys.stdout.write(f"{source}:{rank} {rate:.0f}\n")
    sys.stdout.flush()


def send(destination):
    for _ in range(1000):
        try:
            stream = socket.create_connection((hosts[destination], 7000 + rank))
            break
        except ConnectionRefusedError:
            time.sleep(0.02)
    # Little is left in queues when the time is over.
    stream.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 32768)
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        stream.sendall(bytes(4096))
    stream.close()


threads = [threading.Thread(target=receive, args=(a,)) for a, b in pairs if b == rank]
threads += [threading.Thread(target=send, args=(b,)) for a, b in pairs if a == rank]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
