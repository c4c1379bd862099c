#!/usr/bin/env python3
"""test/cli/hub.py: a hub with the faults that t_pull.sh needs, on two local ports.

    hub.py FOLDER        serves until it is killed; writes FOLDER/main_port, FOLDER/other_port and then
                         FOLDER/ready, and a line for each request to FOLDER/log:
                         main|other METHOD PATH range=.. if-range=.. token=yes|no

The fault is the second word of the repository: u/FAULT. Models are GGUF files of one tensor.
FOLDER/change, if it exists, gives all files another version. FOLDER/cert.pem, if it exists, is the
certificate and key of a third port: FOLDER/tls_port.
"""
import functools
import hashlib
import http.server
import json
import os
import random
import ssl
import struct
import sys
import threading
import time

FOLDER = sys.argv[1]
SIZE = 5 << 20
PORT = {}
COUNT = {}
LOCK = threading.Lock()


def text(s):
    return struct.pack("<Q", len(s)) + s.encode()


def gguf(seed, size, keys=b"", n_keys=0):
    """A file of `size` bytes of tensor data, a multiple of 32."""
    head = b"GGUF" + struct.pack("<IQQ", 3, 1, 1 + n_keys)
    head += text("general.architecture") + struct.pack("<I", 8) + text("llama") + keys
    head += text(f"t{seed}") + struct.pack("<IQIQ", 1, size // 4, 0, 0)
    head += b"\0" * (-len(head) % 32)
    return head + random.Random(seed).randbytes(size)


def split(no, count):
    keys = text("split.no") + struct.pack("<IH", 2, no)
    keys += text("split.count") + struct.pack("<IH", 2, count)
    keys += text("split.tensors.count") + struct.pack("<Ii", 5, count)
    return gguf(100 + no, 1 << 20, keys, 3)


MODEL, CHANGED, SMALL = gguf(1, SIZE), gguf(2, SIZE), gguf(3, 4096)
PARTS = [split(i, 3) for i in range(3)]
INVISIBLE = (0x61c, 0xa0, 0xad, 0x34f, 0x600, 0x115f, 0x17b4, 0x180e, 0x200b, 0x200d, 0x200f, 0x2028, 0x202f,
             0x2060, 0x2064, 0x2067, 0x206f, 0x2800, 0x3000, 0x3164, 0xe000, 0xfe0f, 0xfeff, 0xffa0, 0xfff9, 0x1d173,
             0xe0001, 0xe0041, 0xe0100)
ANSI = "evil\x1b[31m.gguf"


@functools.cache
def sha256(data):
    return hashlib.sha256(data).hexdigest()


def model():
    return CHANGED if os.path.exists(f"{FOLDER}/change") else MODEL


def entry(path, data, size=None, digest=None):
    digest = digest or sha256(data)
    size = len(data) if size is None else size
    return {"type": "file", "path": path, "size": size, "lfs": {"oid": digest, "size": size}}


def listing(fault):
    one = [entry("m-Q4_K_M.gguf", model())]
    if fault == "bigpage":
        return one + [entry(f"{i:05}-{'x' * 190}.txt", b"") for i in range(14000)]
    if fault == "manyparts":
        return [entry(f"{k:02}/s-{i:05}-of-00900.gguf", SMALL) for k in range(39) for i in range(1, 901)]
    other = {
        "several": [entry(p, SMALL) for p in ("b-Q8_0.gguf", "a-Q8_0.gguf", "m-Q4_0.gguf", "sub/m-q6_k.gguf",
                                              "m-mmproj-Q4_0.gguf", "README.md")],
        "first": [entry(p, SMALL) for p in ("z-F16.gguf", "c-F16.gguf")],
        "none": [entry("README.md", b"")],
        "sum": [entry("m-Q4_K_M.gguf", model(), digest="0" * 64)],
        "lies": [entry("m-Q4_K_M.gguf", model(), size=SIZE)],
        "huge": [entry("m-Q4_K_M.gguf", model(), size=10 ** 17)],
        "page": [entry("m-Q4_K_M.gguf", b"<!DOCTYPE html>" * 100)],
        "broken": [entry("m-Q4_K_M.gguf", SMALL[:-100])],
        "split": [entry(f"q8/s-0000{i}-of-00003.gguf", p) for i, p in enumerate(PARTS, 1)],
        "splitcut": [entry(f"s-0000{i}-of-00003.gguf", p) for i, p in enumerate(PARTS, 1)],
        "gap": [entry(f"s-0000{i}-of-00003.gguf", p) for i, p in enumerate(PARTS, 1) if i != 2],
        "invisible": [entry(f"a{chr(c)}b.gguf", SMALL) for c in INVISIBLE],
        "hostile": [entry(p, SMALL) for p in ("../../up.gguf", "/etc/abs.gguf", "a/../b.gguf", ANSI, ".hidden.gguf",
                                              "a\\b.gguf", "a\u202eb.gguf", "-x.gguf", "x\0y.gguf", "n" * 240 + ".gguf")],
    }
    return other.get(fault, one)


@functools.cache
def several_pages():
    """2500 files: the first of a split model on the first page and the others on the last."""
    files = [entry(f"sub/other-{i:04}-Q5_0.gguf", SMALL) for i in range(2500)]
    files[7], *files[-2:] = listing("split")
    return files


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # or each answer waits 40 ms for an acknowledgement

    def log_message(self, *_):
        pass

    def note(self):
        with LOCK, open(f"{FOLDER}/log", "a") as log:
            token = "yes" if self.headers.get("Authorization") else "no"
            print(self.server.role, self.command, self.path, f"range={self.headers.get('Range')}",
                  f"if-range={self.headers.get('If-Range')}", f"token={token}", file=log)

    def answer(self, status, body=b"", **headers):
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def count(self, what):
        with LOCK:
            COUNT[what] = COUNT.get(what, 0) + 1
            return COUNT[what]

    def do_GET(self):
        self.note()
        try:
            self.route()
        except (BrokenPipeError, ConnectionResetError):
            pass
        if self.close_connection:
            self.connection.close()

    def route(self):
        words = self.path.split("?")[0].strip("/").split("/")
        if words[0] == "api":
            self.tree(words[3])
        elif words[0] == "cdn":
            self.send_file(words[1], words[-1])
        elif len(words) > 4:
            self.fault(words[1], words[-1])
        else:
            self.answer(404)

    def tree(self, fault):
        if fault == "missing":
            self.answer(404, b"{}")
        elif fault == "listbusy" and self.count(fault) < 3:
            self.answer(503, b"oops")
        elif fault == "listbreak" and self.count(fault) < 3:
            self.send_response(200)
            self.send_header("Content-Length", "5000")
            self.end_headers()
            self.wfile.write(b'[{"type":"file",')
            self.close_connection = True
        elif fault == "listdown":
            self.answer(500, b"oops")
        elif fault == "private" and not self.headers.get("Authorization") == "Bearer hf_secret":
            self.answer(401, b"{}")
        elif fault == "nojson":
            self.answer(200, b"<html>log in</html>")
        elif fault == "deep":
            self.answer(200, b"[" * 100000)
        elif fault == "object":
            self.answer(200, b'{"error":"no"}')
        elif fault == "flood":
            self.send_response(200)
            self.end_headers()
            self.close_connection = True
            while True:
                self.wfile.write(b" " * (1 << 16))
        elif fault == "bighead":
            self.send_response(200)
            for i in range(3000):
                self.send_header(f"X-{i}", "x" * 60)
            self.end_headers()
        elif fault == "longline":
            self.send_response(200)
            self.send_header("X-Long", "x" * 3000000)
            self.end_headers()
        elif fault in ("pages", "elsewhere", "endless"):
            self.page(fault)
        else:
            self.answer(200, json.dumps(listing(fault)).encode(), Content_Type="application/json")

    def page(self, fault):
        files = several_pages()
        at = int(dict(w.split("=") for w in self.path.split("?")[1].split("&")).get("cursor", 0))
        host = PORT["other" if fault == "elsewhere" else "main"]
        path = f"http://127.0.0.1:{host}/api/models/u/{fault}/tree/main?recursive=1&cursor="
        links = [f'<{path}0>; rel="first"']
        if at + 1000 < len(files) or fault == "endless":
            links.append(f'<{path}{at if fault == "endless" else at + 1000}>; rel="next"')
        body = json.dumps(files[at:at + (1 if fault == "endless" else 1000)]).encode()
        self.answer(200, body, Content_Type="application/json", Link=", ".join(links))

    def fault(self, fault, name):
        here, other = (f"http://127.0.0.1:{PORT[r]}" for r in ("main", "other"))
        if fault in ("cdn", "private"):
            self.answer(302, Location=f"{other}/cdn/plain/{name}?secret=1",
                        X_Linked_Etag=f'"{sha256(self.data(fault, name))}"',
                        X_Linked_Size=str(len(self.data(fault, name))))
        elif fault == "loop":
            self.answer(302, Location=self.path)
        elif fault == "tofile":
            self.answer(302, Location="file:///etc/passwd")
        elif fault == "tohttp":
            self.answer(302, Location="http://192.0.2.1/x")
        elif fault == "nowhere":
            self.answer(302)
        elif fault == "relative":
            self.answer(307, Location="/cdn/plain/" + name)
        elif fault == "busy" and self.count(fault) == 1:
            self.answer(429, Retry_After="1")
        elif fault == "longbusy":
            self.answer(429, Retry_After="5000")
        elif fault == "server":
            self.answer(500, b"oops")
        elif fault == "once500" and self.count(fault) == 2:
            self.answer(502, b"oops")
        elif fault == "gone":
            self.answer(404)
        elif fault == "never" or fault == "once416" and self.count(fault) == 1:
            self.answer(416)
        elif fault == "longfile":
            self.answer(200, b"x", X_Long="x" * 3000000)
        elif fault == "splitcut" and name.startswith("s-00003"):
            self.send_file("short", name)
        else:
            self.send_file(fault, name)

    def data(self, fault, name):
        if "-of-" in name:
            return PARTS[int(name[name.index("-of-") - 5:][:5]) - 1]
        if fault == "page":
            return b"<!DOCTYPE html>" * 100
        if fault == "broken":
            return SMALL[:-100]
        return SMALL if fault in ("several", "first", "small") else model()

    def send_file(self, fault, name):
        data = self.data(fault, name)
        tag = sha256(data)[:16]
        if fault == "restless":
            tag = str(self.count(fault))
        if fault == "once_restless":
            tag = "old" if self.count(fault) <= 2 else "new"
        first, last, asked = 0, len(data) - 1, self.headers.get("Range")
        if fault in ("norange", "norange_break", "cut", "early"):
            asked = None
        same = self.headers.get("If-Range") in (None, f'"{tag}"')
        if asked and same:
            a, b = asked.removeprefix("bytes=").split("-")
            first, last = int(a), min(int(b or last), last)
            self.send_response(206)
            wrong = 7 if fault == "shifted" and first else 0
            total = 10 ** 17 if fault == "huge" else len(data)
            self.send_header("Content-Range", f"bytes {first + wrong}-{last}/{total}")
        else:
            self.send_response(200)
        body = data[first:last + 1]
        if fault == "noetag":
            pass
        elif fault == "weak":
            self.send_header("ETag", f'W/"{tag}"')
        else:
            self.send_header("ETag", f'"{tag}"')
        if fault not in ("chunked", "nolength", "longer"):
            self.send_header("Content-Length", str(len(body)))
        if fault in ("nolength", "longer", "break", "norange_break", "cut", "early", "stuck", "trickle", "short", "slow"):
            self.send_header("Connection", "close")
            self.close_connection = True
        if fault == "chunked":
            self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        self.send_body(fault, body)

    def send_body(self, fault, body):
        if fault == "chunked":
            self.wfile.write(f"{len(body):x}\r\n".encode() + body + b"\r\n0\r\n\r\n")
        elif len(body) <= 1:
            self.wfile.write(body)
        elif fault == "longer":
            self.wfile.write(body + b"more")
        elif fault == "short":
            self.wfile.write(body[:100])
        elif fault == "break":
            self.wfile.write(body[:1200000])
        elif fault == "norange_break":
            self.wfile.write(body[:1200000] if self.count(fault) <= 2 else body)
        elif fault == "cut":
            self.wfile.write(body[:1 << 20])
        elif fault == "early":
            self.wfile.write(body[:-7])
        elif fault == "stuck":
            self.wfile.write(body[:1000000])
            self.wfile.flush()
            time.sleep(30)
        elif fault == "trickle":
            for i in range(300):
                self.wfile.write(body[i:i + 1])
                self.wfile.flush()
                time.sleep(0.1)
        elif fault == "slow":
            for i in range(0, len(body), 1 << 16):
                self.wfile.write(body[i:i + (1 << 16)])
                self.wfile.flush()
                time.sleep(0.03)
        else:
            self.wfile.write(body)


def serve(role):
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.role, server.daemon_threads = role, True
    if role == "tls":
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(f"{FOLDER}/cert.pem")
        server.socket = context.wrap_socket(server.socket, server_side=True)
    PORT[role] = server.server_port
    threading.Thread(target=server.serve_forever, daemon=True).start()


ROLES = ["other", "main"] + ["tls"] * os.path.exists(f"{FOLDER}/cert.pem")
for role in ROLES:
    serve(role)
for name, data in (("model", MODEL), ("changed", CHANGED), ("small", SMALL)):
    with open(f"{FOLDER}/{name}.gguf", "wb") as out:
        out.write(data)
for role in ROLES:
    with open(f"{FOLDER}/{role}_port", "w") as out:
        out.write(str(PORT[role]))
open(f"{FOLDER}/ready", "w").close()
time.sleep(600)
