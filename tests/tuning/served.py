"""Chat completions on this machine: what the fake judges and rewriters over HTTP share."""

import json
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class FakeChat(BaseHTTPRequestHandler):
    """A handler of one kind of request; a subclass says the content of its reply."""

    def body(self):
        return json.loads(self.rfile.read(int(self.headers["content-length"])))

    def answer(self, content):
        message = {"role": "assistant", "content": content}
        reply = {"choices": [{"message": message, "finish_reason": "stop", "index": 0}]}
        data = json.dumps({**reply, "usage": {"prompt_tokens": 9, "completion_tokens": 5}}).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_):
        pass


@contextmanager
def served(handler):
    """The address of a server that handles requests so."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}/v1"
    server.shutdown()
