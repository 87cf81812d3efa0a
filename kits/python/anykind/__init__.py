"""A Kubernetes API server for tests: start, fork, inject faults.

The program anykind is found in the environment variable ANYKIND or in PATH. It stores objects in memory and
listens on a free port of this machine. The package uses the standard library only.

    with anykind.Server(crds="crds") as server:
        kubernetes.config.load_kube_config(server.kubeconfig)
"""

import base64
import itertools
import json
import os
import re
import secrets
import shutil
import ssl
import subprocess
import tempfile
import threading
import urllib.error
import urllib.request
import weakref

__all__ = ["ApiError", "Fault", "Fork", "Server", "StartError", "delay", "hang_up", "hold_events", "lose_answer", "stale_view", "status"]


class StartError(Exception):
    """The server did not start. The message has its log."""


class ApiError(Exception):
    """The server rejected a request. code is that of HTTP, and status the Status of the answer."""

    def __init__(self, code, body):
        self.code = code
        try:
            self.status = json.loads(body)
        except ValueError:
            self.status = {}
        super().__init__(f"{code}: {self.status.get('message') or body}")


def status(code, reason=None, message=None, retry_after_seconds=None):
    """The effect of a fault: the request fails with a Status."""
    effect = {"type": "status", "code": code, "reason": reason, "message": message, "retryAfterSeconds": retry_after_seconds}
    return {k: v for k, v in effect.items() if v is not None}


def delay(seconds):
    """The effect of a fault: the request waits."""
    return {"type": "delay", "duration": f"{seconds:f}s"}


def hang_up():
    """The effect of a fault: the connection ends without a response, and the request has no effect."""
    return {"type": "hangUp"}


def lose_answer():
    """The effect of a fault: the connection ends without a response, and the request takes effect."""
    return {"type": "loseAnswer"}


def stale_view(resource_version):
    """The effect of a fault: gets and lists return the state at a resourceVersion; watches send no events until the fault is removed."""
    return {"type": "staleView", "resourceVersion": resource_version}


def hold_events():
    """The effect of a fault: the events of a watch wait until the fault is removed."""
    return {"type": "holdEvents"}


class Fault:
    """A fault of a server."""

    def __init__(self, server, id):
        self._server = server
        self.id = id

    @property
    def count(self):
        """The number of affected requests."""
        return self._server.request("GET", f"/faults/{self.id}")["count"]

    def remove(self):
        """End the fault. Without it, the fault ends with its server."""
        self._server.request("DELETE", f"/faults/{self.id}")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.remove()


class _Endpoint:
    """A server or a fork."""

    def __init__(self, url, ca, token, directory, name):
        self.url = url
        self.ca = ca  # PEM
        self.token = token  # bearer token of an administrator
        self.kubeconfig = os.path.join(directory, name + ".kubeconfig")
        self._directory = directory
        self._context = ssl.create_default_context(cadata=ca)
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": name,
            "clusters": [{"name": name, "cluster": {"server": url, "certificate-authority-data": base64.b64encode(ca.encode()).decode()}}],
            "users": [{"name": name, "user": {"token": token}}],
            "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
        }
        with open(self.kubeconfig, "w", opener=lambda path, flags: os.open(path, flags, 0o600)) as file:
            json.dump(config, file, indent=2)

    def request(self, method, path, body=None, content_type="application/json"):
        """Send a request as the administrator, and return the decoded answer. body becomes JSON."""
        r = urllib.request.Request(self.url + path, method=method, headers={"Authorization": "Bearer " + self.token, "Content-Type": content_type, "Accept": "application/json"})
        if body is not None:
            r.data = json.dumps(body).encode()
        try:
            with urllib.request.urlopen(r, context=self._context) as answer:
                return json.loads(answer.read())
        except urllib.error.HTTPError as e:
            with e:
                raise ApiError(e.code, e.read().decode(errors="replace")) from None

    def inject(self, effect, **selection):
        """Inject a fault, and return it.

        effect is status(), delay(), hang_up(), lose_answer(), stale_view() or hold_events(). selection has the other fields of the API:
        verbs, groups, resources, subresources, namespaces, names, users, userAgents, skip, times.
        """
        made = self.request("POST", "/faults", {**selection, "effect": effect})
        return Fault(self, made["id"])

    def faults(self):
        """All faults with their counts, as dictionaries."""
        return self.request("GET", "/faults")["items"]

    def clear_faults(self):
        """End all faults."""
        self.request("DELETE", "/faults")


class Fork(_Endpoint):
    """A copy of a server, from the moment of the call of fork(). Neither sees the changes of the other."""

    def __init__(self, server, name, path):
        super().__init__(server.url + path, server.ca, server.token, server._directory, name)
        self.name = name
        self._server = server

    def stop(self):
        """Delete the fork with its objects."""
        self._server.request("DELETE", "/forks/" + self.name)
        os.remove(self.kubeconfig)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()


class Server(_Endpoint):
    """A running server. It ends with stop(), with a with statement, and with this process."""

    _start_timeout = 30  # seconds

    def __init__(self, crds=None, args=(), program=None):
        """Start a server, and return when it is ready.

        crds is a file or folder with CustomResourceDefinitions; args are further flags of anykind serve.
        """
        program = program or os.environ.get("ANYKIND") or shutil.which("anykind")
        if not program:
            raise StartError("the program anykind is not in PATH: install it, or set the environment variable ANYKIND")
        directory = tempfile.mkdtemp(prefix="anykind-")
        process = None
        try:
            token = secrets.token_hex(16)
            tokens = os.path.join(directory, "tokens.csv")
            with open(tokens, "w", opener=lambda path, flags: os.open(path, flags, 0o600)) as file:
                file.write(f"{token},anykind-kit,anykind-kit,system:masters\n")
            command = [program, "serve", "--in-memory", "--data-dir", directory, "--secure-port", "0", "--token-auth-file", tokens, "--fault-injection", "--stop-with-stdin"]
            if crds:
                command += ["--crds", os.fspath(crds)]
            self.log = os.path.join(directory, "server.log")
            with open(self.log, "wb") as log:
                process = subprocess.Popen(command + list(args), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log)
            url = self._wait(process)
            with open(os.path.join(directory, "admin.kubeconfig")) as file:
                ca = base64.b64decode(re.search(r"certificate-authority-data: (\S+)", file.read())[1]).decode()
            super().__init__(url, ca, token, directory, "anykind")
        except BaseException:
            _stop(process, directory)
            raise
        self._names = itertools.count(1)
        self._finalizer = weakref.finalize(self, _stop, process, directory)  # runs at exit, too

    def _wait(self, process):
        """Wait for the line with the URL, which the server prints when it is ready."""
        timer = threading.Timer(self._start_timeout, process.kill)
        timer.start()
        line = process.stdout.readline().decode()
        timer.cancel()
        found = re.search(r"listens on (https://\S+)", line)
        if not found:
            process.kill()
            process.wait()
            with open(self.log, errors="replace") as log:
                raise StartError(f"anykind serve ended with code {process.returncode}: {line}{log.read()}")
        return found[1]

    def fork(self, webhooks="DryRun"):
        """Copy the server in a millisecond. webhooks is DryRun or None, the name of a mode."""
        made = self.request("POST", "/forks", {"name": f"test-{next(self._names)}", "webhooks": webhooks})
        return Fork(self, made["name"], made["path"])

    def stop(self):
        """Stop the server, and remove its files. A second call does nothing."""
        self._finalizer()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()


def _stop(process, directory):
    if process:
        process.stdin.close()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        process.stdout.close()
    shutil.rmtree(directory, ignore_errors=True)
