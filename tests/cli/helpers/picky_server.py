#!/usr/bin/env python3
"""What stands before a server, or what only looks like one: answers some commands itself.

picky_server.py SOCKET TARGET LOG RULE...
SOCKET is a path, or a port of 127.0.0.1. A RULE is WORD=REPLY: a command that begins with WORD (`BLPOP`, `CLIENT SETNAME`) gets REPLY (`-ERR no`, `*-1`), or is
hung up on (`close`); with WORD@N only from the Nth such command on. All else goes to the server at the socket TARGET. LOG gets a line for each command: the
seconds since the first one, and its words without the texts of scripts.
"""

import asyncio
import os
import sys
import time

SOCKET, TARGET, LOG = sys.argv[1:4]
RULES = [rule.split("=", 1) for rule in sys.argv[4:]]
seen = [0] * len(RULES)
began = None


async def read_message(reader):
    """The bytes of a command or a reply."""
    raw = await reader.readline()
    if not raw:
        raise EOFError
    if raw[:1] == b"$" and int(raw[1:]) >= 0:
        raw += await reader.readexactly(int(raw[1:]) + 2)
    elif raw[:1] == b"*":
        for _ in range(max(0, int(raw[1:]))):
            raw += await read_message(reader)
    return raw


def note(words):
    global began
    now = time.monotonic()
    began = now if began is None else began
    shown = [word if len(word) < 100 else "..." for word in words]
    with open(LOG, "a") as log:
        print(f"{now - began:.3f}", *shown, file=log)


def rule_for(words):
    text = " ".join(words).upper() + " "
    for i, (rule, reply) in enumerate(RULES):
        word, _, first = rule.partition("@")
        if text.startswith(word + " "):
            seen[i] += 1
            if seen[i] >= int(first or 1):
                return reply
    return None


async def serve(reader, writer):
    there_in, there_out = await asyncio.open_unix_connection(TARGET)
    following = asyncio.ensure_future(read_message(reader))
    try:
        while True:
            raw = await following
            words = [word.decode(errors="replace") for word in raw.split(b"\r\n")[2::2]]
            note(words)
            reply = rule_for(words)
            if reply == "close":
                return
            following = asyncio.ensure_future(read_message(reader))
            if reply is not None:
                writer.write(reply.encode() + b"\r\n")
                continue
            there_out.write(raw)
            answer = asyncio.ensure_future(read_message(there_in))
            await asyncio.wait({answer, following}, return_when=asyncio.FIRST_COMPLETED)
            if not answer.done() and following.exception():
                answer.cancel()
                return
            writer.write(await answer)
    except (OSError, EOFError, asyncio.IncompleteReadError):
        pass
    finally:
        following.cancel()
        there_out.close()
        writer.close()


async def main():
    if SOCKET.isdigit():
        async with await asyncio.start_server(serve, "127.0.0.1", int(SOCKET)) as server:
            await server.serve_forever()
    async with await asyncio.start_unix_server(serve, SOCKET + ".new") as server:
        os.rename(SOCKET + ".new", SOCKET)
        await server.serve_forever()


asyncio.run(main())
