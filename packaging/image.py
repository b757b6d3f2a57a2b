#!/usr/bin/python3
"""image.py PROGRAM VERSION ARCHITECTURE OUT: an image of the Open Container Initiative's format that holds the portable rlock as /rlock
and nothing else, as one tar file, without a container engine. The date is SOURCE_DATE_EPOCH: the same program makes the same bytes.

    skopeo copy oci-archive:OUT docker://REGISTRY/rlock:VERSION          in a Dockerfile: COPY --from=REGISTRY/rlock /rlock /usr/local/bin/
"""
import gzip
import hashlib
import io
import json
import os
import sys
import tarfile
import time

EPOCH = int(os.environ.get("SOURCE_DATE_EPOCH", "0"))


def add(tar, name, data, mode=0o644):
    entry = tarfile.TarInfo(name)
    entry.size, entry.mode, entry.mtime = len(data), mode, EPOCH
    tar.addfile(entry, io.BytesIO(data))


def layer(program):
    """/rlock, and the folders without which a run has no place for its files."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        add(tar, "rlock", program, 0o755)
        folder = tarfile.TarInfo("tmp")
        folder.type, folder.mode, folder.mtime = tarfile.DIRTYPE, 0o1777, EPOCH
        tar.addfile(folder)
    return out.getvalue()


class Blobs:
    def __init__(self, tar):
        self.tar = tar

    def add(self, data, media_type):
        """The descriptor of the data."""
        digest = hashlib.sha256(data).hexdigest()
        add(self.tar, f"blobs/sha256/{digest}", data)
        return {"mediaType": media_type, "digest": f"sha256:{digest}", "size": len(data)}

    def add_json(self, value, media_type):
        return self.add(json.dumps(value, sort_keys=True, separators=(",", ":")).encode(), media_type)


def main():
    path, version, architecture, out = sys.argv[1:]
    with open(path, "rb") as file:
        files = layer(file.read())
    created = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(EPOCH))
    labels = {"org.opencontainers.image.title": "rlock, the Redis lock runner", "org.opencontainers.image.version": version, "org.opencontainers.image.licenses": "MIT"}
    config = {"created": created, "architecture": architecture, "os": "linux",
              "config": {"Entrypoint": ["/rlock"], "Env": ["PATH=/"], "Labels": labels},
              "rootfs": {"type": "layers", "diff_ids": ["sha256:" + hashlib.sha256(files).hexdigest()]},
              "history": [{"created": created, "created_by": "packaging/image.py"}]}
    with tarfile.open(out, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        blobs = Blobs(tar)
        kind = "application/vnd.oci.image."
        manifest = {"schemaVersion": 2, "mediaType": kind + "manifest.v1+json", "config": blobs.add_json(config, kind + "config.v1+json"),
                    "layers": [blobs.add(gzip.compress(files, mtime=0), kind + "layer.v1.tar+gzip")], "annotations": labels}
        entry = blobs.add_json(manifest, kind + "manifest.v1+json")
        entry |= {"platform": {"architecture": architecture, "os": "linux"}, "annotations": {"org.opencontainers.image.ref.name": version}}
        index = {"schemaVersion": 2, "mediaType": kind + "index.v1+json", "manifests": [entry]}
        add(tar, "index.json", json.dumps(index, sort_keys=True).encode())
        add(tar, "oci-layout", b'{"imageLayoutVersion":"1.0.0"}')


main()
