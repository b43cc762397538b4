"""A bucket in memory, spoken to as an S3 object store, that refuses some keys."""

from __future__ import annotations

import threading
import time
import urllib.parse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Self
from xml.sax.saxutils import escape

NAME = "bucket"


class Bucket:
    """Serve one bucket on a local port for as long as the context lasts.

    Args:
        refuses: Keys that contain this are refused with 403.

        stalls: Keys that contain this are taken after ``stalls_s`` only.

        stalls_s: Seconds.
    """

    def __init__(
        self, refuses: str | None = None, stalls: str | None = None, stalls_s: float = 0
    ) -> None:
        self.refuses = refuses
        self.stalls, self.stalls_s = stalls, stalls_s
        self.objects: dict[str, bytes] = {}
        self.uploads: dict[str, dict[int, bytes]] = {}
        self.refused: list[str] = []
        self._server: Any = None

    def __enter__(self) -> Self:
        """Start the server."""
        handler = type("Handler", (_Handler,), {"bucket": self})
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        """Stop it."""
        self._server.shutdown()
        self._server.server_close()

    def filesystem(self) -> Any:
        """Return pyarrow's file system of the store."""
        from pyarrow import fs

        return fs.S3FileSystem(
            access_key="key",
            secret_key="secret",
            endpoint_override=f"127.0.0.1:{self._server.server_port}",
            scheme="http",
            region="us-east-1",
            allow_bucket_creation=True,
        )

    def download(self, prefix: str, folder: Path) -> Path:
        """Copy what lies under a prefix into a folder."""
        for key, data in self.objects.items():
            if key.startswith(f"{prefix}/") and not key.endswith("/"):
                path = folder / key.removeprefix(f"{prefix}/")
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(data)
        return folder


class _Handler(BaseHTTPRequestHandler):
    bucket: Bucket
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: Any) -> None:
        """Say nothing."""

    def _target(self) -> tuple[str, dict[str, str]]:
        parts = urllib.parse.urlsplit(self.path)
        path = urllib.parse.unquote(parts.path).lstrip("/")
        query = dict(urllib.parse.parse_qsl(parts.query, keep_blank_values=True))
        return path.removeprefix(NAME).lstrip("/"), query

    def _answer(self, status: int, body: bytes = b"", **headers: str) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def _refuse(self, key: str) -> bool:
        if self.bucket.stalls is not None and self.bucket.stalls in key:
            time.sleep(self.bucket.stalls_s)
        if self.bucket.refuses is None or self.bucket.refuses not in key:
            return False
        self.bucket.refused.append(key)
        self._answer(403, b"<Error><Code>AccessDenied</Code></Error>")
        return True

    def _body(self) -> bytes:
        """Return the request's content, also where it comes in signed chunks."""
        data = self._raw_body()
        streamed = self.headers.get("x-amz-content-sha256", "").startswith("STREAMING")
        whole = b""
        while streamed and data:
            head, _, data = data.partition(b"\r\n")
            size = int(head.partition(b";")[0] or b"0", 16)
            whole, data = whole + data[:size], data[size + 2 :] if size else b""
        return whole if streamed else data

    def _raw_body(self) -> bytes:
        if "chunked" not in self.headers.get("Transfer-Encoding", ""):
            return self.rfile.read(int(self.headers.get("Content-Length", 0)))
        data = b""
        while size := int(self.rfile.readline().partition(b";")[0], 16):
            data += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return data

    def do_PUT(self) -> None:
        """Store an object, or a part of one."""
        key, query = self._target()
        data = self._body()
        if key and self._refuse(key):
            return
        if "uploadId" in query:
            parts = self.bucket.uploads.setdefault(query["uploadId"], {})
            parts[int(query["partNumber"])] = data
        elif key:
            self.bucket.objects[key] = data
        self._answer(200, ETag='"0"')

    def do_POST(self) -> None:
        """Begin or complete an upload in parts, or delete several objects."""
        key, query = self._target()
        self._body()
        if "uploads" in query:
            if self._refuse(key):
                return
            body = f"<InitiateMultipartUploadResult><Key>{escape(key)}</Key>"
            body += (
                f"<UploadId>{escape(key)}</UploadId></InitiateMultipartUploadResult>"
            )
            self._answer(200, body.encode())
        elif "uploadId" in query:
            parts = self.bucket.uploads.pop(query["uploadId"], {})
            self.bucket.objects[key] = b"".join(parts[n] for n in sorted(parts))
            body = f"<CompleteMultipartUploadResult><Key>{escape(key)}</Key>"
            self._answer(200, f"{body}</CompleteMultipartUploadResult>".encode())
        else:
            self._answer(200, b"<DeleteResult></DeleteResult>")

    def do_HEAD(self) -> None:
        """Tell whether an object is there."""
        key, _ = self._target()
        self._get(key)

    def do_GET(self) -> None:
        """Return an object, or a listing."""
        key, query = self._target()
        if key or "location" in query:
            self._get(key)
        else:
            self._list(query)

    def _get(self, key: str) -> None:
        if not key:
            self._answer(200, b"<LocationConstraint/>")
        elif key in self.bucket.objects:
            data = self.bucket.objects[key]
            wanted = self.headers.get("Range", "")
            if wanted.startswith("bytes="):
                first, _, last = wanted.removeprefix("bytes=").partition("-")
                data = data[int(first) : int(last) + 1 if last else None]
            date = "Thu, 01 Jan 2026 00:00:00 GMT"
            status = 206 if wanted else 200
            self._answer(status, data, ETag='"0"', Last_Modified=date)
        else:
            self._answer(404, b"<Error><Code>NoSuchKey</Code></Error>")

    def _list(self, query: dict[str, str]) -> None:
        prefix, delimiter = query.get("prefix", ""), query.get("delimiter", "")
        keys, folders = [], set()
        for key in sorted(self.bucket.objects):
            if not key.startswith(prefix):
                continue
            head, found, _ = key.removeprefix(prefix).partition(delimiter or "\0")
            if delimiter and found:
                folders.add(f"{prefix}{head}{delimiter}")
            else:
                keys.append(key)
        body = "".join(
            f"<Contents><Key>{escape(k)}</Key><Size>{len(self.bucket.objects[k])}</Size>"
            "<LastModified>2026-01-01T00:00:00.000Z</LastModified></Contents>"
            for k in keys
        )
        body += "".join(
            f"<CommonPrefixes><Prefix>{escape(f)}</Prefix></CommonPrefixes>"
            for f in sorted(folders)
        )
        count = len(keys) + len(folders)
        body = f"<Name>{NAME}</Name><KeyCount>{count}</KeyCount>{body}"
        body = f"<ListBucketResult>{body}<IsTruncated>false</IsTruncated>"
        self._answer(200, f"{body}</ListBucketResult>".encode())

    def do_DELETE(self) -> None:
        """Delete an object."""
        key, _ = self._target()
        self.bucket.objects.pop(key, None)
        self._answer(204)
