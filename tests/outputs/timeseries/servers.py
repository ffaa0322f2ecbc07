"""Real servers on free loopback ports, each with a folder of its own; killed and started again on request."""

import base64
import json
import socket
import subprocess
import time
import urllib.error
import urllib.request
from pathlib import Path
from urllib.parse import urlencode

from tests.conftest import need


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def ask(url, data=None, headers=None):
    """The body behind a URL."""
    with urllib.request.urlopen(urllib.request.Request(url, data, headers or {}), timeout=60) as answer:
        return answer.read()


class Server:
    """A program that listens on ``port``; ``health`` is the path that answers when it is up."""

    health = "/"

    def __init__(self, folder):
        self.folder, self.port, self.process = Path(folder), free_port(), None
        self.folder.mkdir(parents=True, exist_ok=True)
        self.base = f"http://127.0.0.1:{self.port}"

    def command(self):
        raise NotImplementedError

    def start(self):
        log = open(self.folder / "log", "ab")  # noqa: SIM115
        self.process = subprocess.Popen(self.command(), stdout=log, stderr=log, cwd=self.folder)
        log.close()
        while True:
            try:
                ask(self.base + self.health)
                return self
            except (OSError, urllib.error.URLError):
                assert self.process.poll() is None, (self.folder / "log").read_text()[-2000:]
                time.sleep(0.05)

    def kill(self):
        """As a power cut would."""
        self.process.kill()
        self.process.wait()

    def stop(self):
        if self.process is not None and self.process.poll() is None:
            self.process.kill()
            self.process.wait()


class Victoria(Server):
    health = "/health"
    arguments = ()

    def command(self):
        return [
            need("victoria-metrics"), f"-httpListenAddr=127.0.0.1:{self.port}", "-memory.allowedBytes=64MB",
            f"-storageDataPath={self.folder / 'data'}", "-retentionPeriod=100y", "-dedup.minScrapeInterval=1ms",
            "-search.latencyOffset=0s", *self.arguments,
        ]  # fmt: skip

    def query(self, text, at=None):
        """What PromQL gives, by the labels of its series."""
        ask(f"{self.base}/internal/force_flush")
        asked = {"query": text, "nocache": "1"} | ({"time": at} if at else {})
        found = json.loads(ask(f"{self.base}/api/v1/query?{urlencode(asked)}"))
        assert found["status"] == "success"
        return [(row["metric"], float(row["value"][1])) for row in found["data"]["result"]]

    def rows(self, match='{__name__=~"wattribute_.*"}'):
        """All that is stored, as (labels, [(ms, value)])."""
        ask(f"{self.base}/internal/force_flush")
        asked = {"match[]": match, "end": time.time() + 60}  # by default it stops at the last whole second
        text = ask(f"{self.base}/api/v1/export?{urlencode(asked)}")
        found = [json.loads(line) for line in text.splitlines()]
        return [(row["metric"], list(zip(row["timestamps"], row["values"], strict=True))) for row in found]

    def push(self, **options):
        query = f"?{urlencode(options)}" if options else ""
        return f"victoria+{self.base}{query}"


class SecuredVictoria(Victoria):
    health = "/health"
    arguments = ("-httpAuth.username=ada", "-httpAuth.password=secret-word")


class Influx(Server):
    health = "/ping"
    auth = False

    def command(self):
        config = self.folder / "influxdb.conf"
        config.write_text(
            f"""
reporting-disabled = true
bind-address = "127.0.0.1:{free_port()}"
[meta]
  dir = "{self.folder}/meta"
[data]
  dir = "{self.folder}/data"
  wal-dir = "{self.folder}/wal"
[monitor]
  store-enabled = false
[http]
  bind-address = "127.0.0.1:{self.port}"
  auth-enabled = {str(self.auth).lower()}
  log-enabled = false
"""
        )
        return [need("influxd"), "-config", str(config)]

    def query(self, text, database="wattribute", user=None):
        """The rows of InfluxQL's answer as dictionaries, tags included."""
        headers = {"Authorization": "Basic " + base64.b64encode(user.encode()).decode()} if user else {}
        data = urlencode({"q": text, "db": database, "epoch": "ns"}).encode()
        (result,) = json.loads(ask(f"{self.base}/query", data, headers))["results"]
        assert "error" not in result, result
        return [
            dict(zip(series["columns"], row, strict=True)) | series.get("tags", {})
            for series in result.get("series", ())
            for row in series["values"]
        ]

    def write(self, database, lines):
        """Lines of the protocol into a database that is made first."""
        self.query(f'CREATE DATABASE "{database}"')
        ask(f"{self.base}/write?{urlencode({'db': database})}", lines.encode())

    def push(self, database="wattribute"):
        return f"influx+{self.base}/{database}"


class SecuredInflux(Influx):
    auth = True

    def start(self):
        super().start()
        data = urlencode({"q": "CREATE USER ada WITH PASSWORD 'secret-word' WITH ALL PRIVILEGES"}).encode()
        ask(f"{self.base}/query", data)
        return self


class Prometheus(Server):
    health = "/-/ready"
    config = "scrape_configs: []\n"

    def command(self):
        (self.folder / "prometheus.yml").write_text(self.config)
        return [
            need("prometheus"), f"--config.file={self.folder / 'prometheus.yml'}",
            f"--storage.tsdb.path={self.folder / 'data'}", "--storage.tsdb.retention.time=100y",
            f"--web.listen-address=127.0.0.1:{self.port}",
        ]  # fmt: skip

    def query(self, text, at):
        found = json.loads(ask(f"{self.base}/api/v1/query?{urlencode({'query': text, 'time': at})}"))
        assert found["status"] == "success"
        return [(row["metric"], float(row["value"][1])) for row in found["data"]["result"]]
