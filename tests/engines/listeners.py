"""Real sockets that are not the server that somebody looks for."""

import socket
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

KINDS = ("silent", "garbage", "closing", "http")


@contextmanager
def listener(kind):
    """The port of a server that accepts and says nothing, sends garbage, closes at once, or speaks HTTP."""
    if kind == "http":
        server = ThreadingHTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler)
        server.timeout, server.block_on_close = 0.1, False  # a client that waits for us must not be waited for
        port, step = server.server_address[1], server.handle_request
        close = server.server_close
        BaseHTTPRequestHandler.log_message = lambda *_: None
    else:
        made, open_ = socket.create_server(("127.0.0.1", 0)), []
        made.settimeout(0.1)
        port, close = made.getsockname()[1], made.close

        def step():
            try:
                peer, _ = made.accept()
            except TimeoutError:
                return
            open_.append(peer)
            if kind == "garbage":
                peer.sendall(bytes(range(256)) * 8)
            if kind == "closing":
                peer.close()

    done = threading.Event()

    def serve():
        while not done.is_set():
            step()

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield port
    finally:
        done.set()
        thread.join()
        close()
