"""Tests of the package: python3 -m unittest. Those with the package kubernetes are skipped without it."""

import http.client
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest

import anykind

try:
    import kubernetes
except ImportError:
    kubernetes = None

CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
CRD = """{"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "widgets.example.com"},
"spec": {"group": "example.com", "scope": "Namespaced", "names": {"plural": "widgets", "kind": "Widget"},
"versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object",
"properties": {"spec": {"type": "object", "properties": {"size": {"type": "integer"}}}}}}}]}}"""


def widget(name, size=1):
    return {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": name}, "spec": {"size": size}}


class ServerTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        with tempfile.TemporaryDirectory() as crds:
            with open(os.path.join(crds, "widgets.json"), "w") as file:
                file.write(CRD)
            cls.server = anykind.Server(crds=crds)
        cls.addClassCleanup(cls.server.stop)

    def setUp(self):
        self.fork = self.server.fork()
        self.addCleanup(self.fork.stop)

    def test_crds(self):
        widgets = "/apis/example.com/v1/namespaces/default/widgets"
        self.assertEqual(self.fork.request("POST", widgets, widget("a"))["spec"], {"size": 1})
        with self.assertRaises(anykind.ApiError) as rejected:
            self.fork.request("POST", widgets, widget("b", "large"))
        self.assertEqual((rejected.exception.code, rejected.exception.status["reason"]), (422, "Invalid"))

    def test_forks_are_apart(self):
        self.fork.request("POST", CONFIG_MAPS, {"metadata": {"name": "a"}})
        with self.server.fork() as other:
            for apart in (self.server, other):
                with self.assertRaises(anykind.ApiError) as missing:
                    apart.request("GET", CONFIG_MAPS + "/a")
                self.assertEqual(missing.exception.code, 404)

    def test_status(self):
        fault = self.fork.inject(anykind.status(409, message="not now"), verbs=["create"], resources=["configmaps"])
        with self.assertRaises(anykind.ApiError) as conflict:
            self.fork.request("POST", CONFIG_MAPS, {"metadata": {"name": "a"}})
        self.assertEqual((conflict.exception.code, conflict.exception.status["reason"], str(conflict.exception)), (409, "Conflict", "409: not now"))
        self.fork.request("POST", CONFIG_MAPS, {"metadata": {"name": "a"}})
        self.assertEqual(fault.count, 1)
        fault.remove()
        self.assertEqual(self.fork.faults(), [])

    def test_lost_connections(self):
        for effect, exists in ((anykind.hang_up(), False), (anykind.lose_answer(), True)):
            self.fork.inject(effect, verbs=["create"], resources=["configmaps"])
            with self.assertRaises((http.client.RemoteDisconnected, ConnectionError)):
                self.fork.request("POST", CONFIG_MAPS, {"metadata": {"name": effect["type"].lower()}})
            names = [o["metadata"]["name"] for o in self.fork.request("GET", CONFIG_MAPS)["items"]]
            self.assertEqual(effect["type"].lower() in names, exists)

    def test_delay(self):
        self.fork.inject(anykind.delay(0.2), resources=["secrets"])
        began = time.monotonic()
        self.fork.request("GET", "/api/v1/secrets")
        self.assertGreaterEqual(time.monotonic() - began, 0.2)

    def test_invalid_fault(self):
        with self.assertRaises(anykind.ApiError) as invalid:
            self.fork.inject({"type": "explode"})
        self.assertEqual((invalid.exception.code, invalid.exception.status["details"]["causes"][0]["field"]), (422, "effect.type"))

    @unittest.skipUnless(kubernetes, "the package kubernetes is not installed")
    def test_client(self):
        api = kubernetes.client.CoreV1Api(kubernetes.config.new_client_from_config(self.fork.kubeconfig))
        body = kubernetes.client.V1ConfigMap(metadata=kubernetes.client.V1ObjectMeta(name="a"), data={"k": "v"})
        created = api.create_namespaced_config_map("default", body)
        fault = self.fork.inject(anykind.status(409), verbs=["update"], resources=["configmaps"])
        with self.assertRaises(kubernetes.client.ApiException) as conflict:
            api.replace_namespaced_config_map("a", "default", created)
        self.assertEqual((conflict.exception.status, fault.count), (409, 1))
        created.data = {"k": "w"}
        self.assertEqual(api.replace_namespaced_config_map("a", "default", created).data, {"k": "w"})
        events = kubernetes.watch.Watch()
        for event in events.stream(api.list_namespaced_config_map, "default", field_selector="metadata.name=a", timeout_seconds=10):
            self.assertEqual((event["type"], event["object"].data), ("ADDED", {"k": "w"}))
            events.stop()


class LifeTest(unittest.TestCase):
    def test_stop(self):
        server = anykind.Server()
        directory = os.path.dirname(server.kubeconfig)
        server.stop()
        server.stop()
        self.assertFalse(os.path.exists(directory))
        with self.assertRaises(OSError):
            server.request("GET", "/version")

    def test_start_fails(self):
        with self.assertRaisesRegex(anykind.StartError, "unknown flag: --no-such-flag"):
            anykind.Server(args=["--no-such-flag"])

    def test_no_program(self):
        with self.assertRaises(FileNotFoundError):
            anykind.Server(program=os.path.join(tempfile.gettempdir(), "no-such-program"))

    def test_killed_process(self):
        """The server ends with its test process, even if that is killed."""
        code = "import anykind, sys; s = anykind.Server(); print(s.log, flush=True); sys.stdin.read()"
        test = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        log = test.stdout.readline().decode().strip()
        self.addCleanup(lambda: shutil.rmtree(os.path.dirname(log)))
        with open(os.path.join(os.path.dirname(log), "anykind.kubeconfig")) as file:
            port = int(file.read().split("https://127.0.0.1:")[1].split('"')[0])
        test.send_signal(signal.SIGKILL)
        test.wait()
        test.stdin.close()
        test.stdout.close()
        deadline = time.monotonic() + 20
        while True:
            try:
                socket.create_connection(("127.0.0.1", port)).close()
            except ConnectionRefusedError:
                break
            self.assertLess(time.monotonic(), deadline, "the server still listens")
            time.sleep(0.01)


if __name__ == "__main__":
    unittest.main()
