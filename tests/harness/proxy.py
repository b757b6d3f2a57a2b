"""proxy.py TARGET_HOST TARGET_PORT LISTEN_HOST PORT...: passes bytes to a server, and harms them as the lines on stdin say:
{"port": P, "mode": "pass|hold|far|delay|stall|trickle|swallow", "seconds": S}. `hold` passes nothing. `far` is a server that is S away in
each direction: a new connection takes twice that, too. The others harm the replies. Prints a line once it listens and once for each
order. Ends with its stdin.
"""
import asyncio
import contextlib
import json
import socket
import subprocess
import sys

from harness import DIES_WITH_US

# s: who vanishes without a word leaves the server as soon as one that it serves itself (redis_node.py's KEEPALIVE).
KEEPALIVE = ((socket.TCP_KEEPIDLE, 5), (socket.TCP_KEEPINTVL, 1), (socket.TCP_KEEPCNT, 3))


class Proxy:
    """The program, in front of `target`, a host and a port."""

    def __init__(self, target, listen, ports, before=DIES_WITH_US):
        words = [sys.executable, "-B", __file__, *target, listen, *ports]
        self.process = subprocess.Popen([*before, *map(str, words)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.process.stdout.readline()

    def order(self, port, mode, seconds=0):
        """Returns once it does so."""
        self.process.stdin.write(json.dumps({"port": port, "mode": mode, "seconds": seconds}) + "\n")
        self.process.stdin.flush()
        self.process.stdout.readline()

    def end(self):
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()


modes = {}
changed = None


def mode_of(port):
    return modes.get(port, ("pass", 0))


async def arrivals(port, reader, ways=1):
    """What `reader` reads, when it has come; the first of it takes so many times the way."""
    loop = asyncio.get_running_loop()
    under_way = asyncio.Queue()

    async def send(ways):
        with contextlib.suppress(OSError):  # it vanished
            while data := await reader.read(65536):
                mode, seconds = mode_of(port)
                under_way.put_nowait((loop.time() + ways * seconds if mode == "far" else 0, data))
                ways = 1
        under_way.put_nowait((0, b""))

    sender = asyncio.ensure_future(send(ways))
    try:
        while True:
            due, data = await under_way.get()
            await asyncio.sleep(due - loop.time())
            if not data:
                return
            yield data
    finally:
        sender.cancel()


async def requests(port, reader, writer):
    async for data in arrivals(port, reader, ways=3):
        await while_in(port, "hold")
        writer.write(data)
        await writer.drain()


async def while_in(port, *those):
    while mode_of(port)[0] in those:
        await changed.wait()


async def deliver(port, data, client):
    """False when the reply is swallowed and the connection is to be reset."""
    mode, seconds = mode_of(port)
    if mode == "swallow":
        return False
    if mode == "delay":
        await asyncio.sleep(seconds)
    await while_in(port, "hold", "stall")
    if mode == "trickle":
        for at in range(len(data)):
            client.write(data[at:at + 1])
            await client.drain()
            if mode_of(port)[0] == "trickle":
                await asyncio.sleep(seconds)
    else:
        client.write(data)
        await client.drain()
    return True


async def replies(port, server, client):
    async for data in arrivals(port, server):
        if not await deliver(port, data, client):
            client.transport.abort()
            return


def notice_death(client):
    line = client.get_extra_info("socket")
    line.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in KEEPALIVE:
        line.setsockopt(socket.IPPROTO_TCP, option, value)


async def serve(port, target, client_reader, client):
    notice_death(client)
    writer = None
    try:
        reader, writer = await asyncio.open_connection(*target)
        ways = [asyncio.ensure_future(requests(port, client_reader, writer)),
                asyncio.ensure_future(replies(port, reader, client))]
        _, left = await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        for way in left:
            way.cancel()
        await asyncio.gather(*ways, return_exceptions=True)
    except (OSError, asyncio.CancelledError):
        pass  # one of the two went away, or the proxy ends
    finally:
        client.close()
        if writer is not None:
            writer.close()


async def obey():
    lines = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)
    while line := await lines.readline():
        order = json.loads(line)
        modes[order["port"]] = (order["mode"], order["seconds"])
        changed.set()
        changed.clear()
        print("done", flush=True)


async def main():
    global changed
    changed = asyncio.Event()
    target, listen, ports = (sys.argv[1], int(sys.argv[2])), sys.argv[3], map(int, sys.argv[4:])
    for port in ports:
        await asyncio.start_server(lambda r, w, port=port: serve(port, target, r, w), listen, port)
    print("up", flush=True)
    await obey()


if __name__ == "__main__":
    asyncio.run(main())
