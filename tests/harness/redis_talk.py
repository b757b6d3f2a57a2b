"""As much of the redis protocol as the faults need, and a reader of append-only files."""
import socket


class Refused(Exception):
    """The server's error reply."""


def encode(words):
    parts = [b"*%d\r\n" % len(words)]
    for word in words:
        data = str(word).encode()
        parts.append(b"$%d\r\n%s\r\n" % (len(data), data))
    return b"".join(parts)


def start(path, *words):
    """Sends a command; the connection, whose reply nobody waits for."""
    line = socket.socket(socket.AF_UNIX)
    try:
        line.settimeout(10)
        line.connect(path)
        line.sendall(encode(words))
    except OSError:
        line.close()
        raise
    return line


def call(path, *words):
    with start(path, *words) as line, line.makefile("rb") as reader:
        return read_reply(reader)


def read_reply(reader):
    head = reader.readline()
    if not head.endswith(b"\r\n"):
        raise OSError("the server went away")
    kind, rest = head[:1], head[1:-2].decode()
    if kind == b"-":
        raise Refused(rest)
    if kind == b":":
        return int(rest)
    if kind == b"$":
        return reader.read(int(rest) + 2)[:-2].decode("utf-8", "replace") if rest != "-1" else None
    if kind == b"*":
        return [read_reply(reader) for _ in range(int(rest))]
    return rest


def read_commands(path):
    """The commands of an append-only file, as lists of texts, up to where it is cut off."""
    with open(path, "rb") as file:
        while head := file.readline():
            if not head.startswith(b"*"):
                continue  # an annotation
            words = []
            for _ in range(int(head[1:])):
                size = file.readline()
                if not size.endswith(b"\r\n"):
                    return
                data = file.read(int(size[1:]) + 2)
                if not data.endswith(b"\r\n"):
                    return
                words.append(data[:-2].decode("utf-8", "replace"))
            yield words
