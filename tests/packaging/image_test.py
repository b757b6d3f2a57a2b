#!/usr/bin/env python3
"""image_test.py PROGRAM: an image of the portable rlock, PROGRAM, by packaging/image.py: its digests, its bytes twice, what skopeo says to it
where that is installed; and a run as process 1 of the image's root. Needs root.
"""
import hashlib
import io
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tarfile
import tempfile
import unittest

TOP = pathlib.Path(__file__).resolve().parents[2]
sys.path.append(str(TOP / "tests" / "harness"))
from redis_server import RedisServer  # noqa: E402

PROGRAM = os.path.realpath(sys.argv.pop())


def unpack(path, folder):
    """As an engine does."""
    with tarfile.open(path) as image:
        def blob(descriptor):
            kind, digest = descriptor["digest"].split(":")
            data = image.extractfile(f"blobs/{kind}/{digest}").read()
            assert hashlib.sha256(data).hexdigest() == digest and len(data) == descriptor["size"], descriptor
            return data

        assert json.load(image.extractfile("oci-layout"))["imageLayoutVersion"] == "1.0.0"
        manifest = json.loads(blob(json.load(image.extractfile("index.json"))["manifests"][0]))
        config = json.loads(blob(manifest["config"]))
        [layer] = manifest["layers"]
        with tarfile.open(fileobj=io.BytesIO(blob(layer))) as files:
            files.fileobj.seek(0)
            assert "sha256:" + hashlib.sha256(files.fileobj.read()).hexdigest() == config["rootfs"]["diff_ids"][0]
            assert config["config"]["Entrypoint"] == ["/rlock"]
            files.extractall(folder)


class Image(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp()
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        cls.path, cls.root = cls.made("image.tar"), f"{cls.folder}/root"
        unpack(cls.path, cls.root)

    @classmethod
    def made(cls, name):
        path = f"{cls.folder}/{name}"
        subprocess.run([sys.executable, "-B", TOP / "packaging/image.py", PROGRAM, "1.2.3", "amd64", path], check=True,
                       env={**os.environ, "SOURCE_DATE_EPOCH": "1000000000"})
        return path

    def expect(self, code, *words, **how):
        done = subprocess.run(words, capture_output=True, text=True, check=False, **how)
        self.assertEqual(done.returncode, code, done)
        return done.stdout

    def test_the_same_program_makes_the_same_image(self):
        self.assertEqual(*(pathlib.Path(path).read_bytes() for path in (self.path, self.made("again.tar"))))

    @unittest.skipUnless(shutil.which("skopeo"), "skopeo is not installed")
    def test_skopeo_reads_and_copies_it(self):
        self.assertIn('"Architecture": "amd64"', self.expect(0, "skopeo", "inspect", f"oci-archive:{self.path}"))
        self.expect(0, "skopeo", "copy", "--quiet", "--insecure-policy", f"oci-archive:{self.path}", f"dir:{self.folder}/copy")

    def test_rlock_runs_as_process_1_and_exits_as_its_command(self):
        """No libc, no shell, neither /proc nor /dev."""
        def run(code, *words):
            return self.expect(code, "unshare", "--mount", "--propagation", "private", "--pid", "--fork", "--kill-child",
                               "chroot", self.root, "/rlock", *words, env={**os.environ, "RLOCK_URL": "unix:///s"})

        with RedisServer(folder=self.root):
            run(0, "--version")
            self.assertIn("rlock ", run(0, "run", "nightly", "--", "/rlock", "--version"))
            seen = run(0, "run", "nightly", "--", "/rlock", "run", "-n", "other", "--", "/rlock", "status", "--json", "nightly")
            self.assertIn('"state":"held"', seen)
            owner = run(0, "acquire", "nightly", "--ttl", "1m").strip()
            run(75, "run", "-n", "nightly", "--", "/rlock", "--version")
            run(0, "release", "nightly", "--owner", owner)
            run(127, "run", "nightly", "--", "no-such-command")


if os.geteuid() != 0:
    print("skipped: needs root")
    sys.exit(77)
if "=>" in subprocess.run(["ldd", PROGRAM], capture_output=True, text=True, check=False).stdout:
    print(f"skipped: {PROGRAM} is not the portable flavour")
    sys.exit(77)
unittest.main()
