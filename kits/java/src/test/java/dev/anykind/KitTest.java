package dev.anykind;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.net.ConnectException;
import java.net.InetAddress;
import java.net.Socket;
import java.net.URI;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Comparator;

/** Tests of the package without a test framework: java dev.anykind.KitTest. */
public final class KitTest {
  private static final String CONFIG_MAPS = "/api/v1/namespaces/default/configmaps";
  private static final String CRD = """
      {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "widgets.example.com"},
      "spec": {"group": "example.com", "scope": "Namespaced", "names": {"plural": "widgets", "kind": "Widget"},
      "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object",
      "properties": {"spec": {"type": "object", "properties": {"size": {"type": "integer"}}}}}}}]}}
      """;

  private interface Call {
    void run() throws Exception;
  }

  private interface Test {
    void run(Server server, Fork fork) throws Exception;
  }

  private static int passed;

  public static void main(String[] args) throws Exception {
    if (args.length > 0) { // a process to kill
      Server server = Server.start();
      System.out.println(server.url() + " " + server.log());
      System.in.read();
      return;
    }
    Path crds = Files.createTempFile("crds", ".json");
    Files.writeString(crds, CRD);
    try (Server server = Server.options().crds(crds).start()) {
      Files.delete(crds);
      test(server, KitTest::definitions);
      test(server, KitTest::forksAreApart);
      test(server, KitTest::status);
      test(server, KitTest::lostConnections);
      test(server, KitTest::delay);
      test(server, KitTest::invalidFault);
    }
    stop();
    startFails();
    killedProcess();
    passed += 3;
    System.out.println(passed + " tests passed");
  }

  private static void test(Server server, Test test) throws Exception {
    try (Fork fork = server.fork()) {
      test.run(server, fork);
    }
    passed++;
  }

  private static void definitions(Server server, Fork fork) throws Exception {
    String widgets = "/apis/example.com/v1/namespaces/default/widgets";
    String widget = "{\"apiVersion\":\"example.com/v1\",\"kind\":\"Widget\",\"metadata\":{\"name\":\"a\"},\"spec\":{\"size\":%s}}";
    contains(fork.request("POST", widgets, widget.formatted("1")), "\"size\":1");
    rejected(422, () -> fork.request("POST", widgets, widget.formatted("\"large\"")));
  }

  private static void forksAreApart(Server server, Fork fork) throws Exception {
    create(fork, "a");
    try (Fork other = server.fork()) {
      rejected(404, () -> other.request("GET", CONFIG_MAPS + "/a", null));
      rejected(404, () -> server.request("GET", CONFIG_MAPS + "/a", null));
    }
    contains(Files.readString(fork.kubeconfig()), fork.url());
  }

  private static void status(Server server, Fork fork) throws Exception {
    try (Fault fault = fork.inject(FaultSpec.of(Effect.status(409, "Conflict", "\"not\"\nnow")).verbs("create").resources("configmaps"))) {
      contains(rejected(409, () -> create(fork, "a")).status(), "\\\"not\\\"\\nnow");
      create(fork, "a");
      equal(fault.count(), 1);
    }
    contains(fork.faults(), "\"items\":[]");
    fork.inject(FaultSpec.of(Effect.tooManyRequests(1)).resources("secrets").skip(1).times(2));
    fork.request("GET", "/api/v1/secrets", null);
    contains(rejected(429, () -> fork.request("GET", "/api/v1/secrets", null)).status(), "\"retryAfterSeconds\":1");
    fork.clearFaults();
    fork.request("GET", "/api/v1/secrets", null);
  }

  private static void lostConnections(Server server, Fork fork) throws Exception {
    fork.inject(FaultSpec.of(Effect.hangUp()).verbs("create").resources("configmaps"));
    throwing(IOException.class, () -> create(fork, "hung-up"));
    rejected(404, () -> fork.request("GET", CONFIG_MAPS + "/hung-up", null));
    fork.inject(FaultSpec.of(Effect.loseAnswer()).verbs("create").resources("configmaps"));
    throwing(IOException.class, () -> create(fork, "lost"));
    fork.request("GET", CONFIG_MAPS + "/lost", null);
  }

  private static void delay(Server server, Fork fork) throws Exception {
    fork.inject(FaultSpec.of(Effect.delay(Duration.ofMillis(200))).resources("secrets"));
    long began = System.nanoTime();
    fork.request("GET", "/api/v1/secrets", null);
    check(System.nanoTime() - began >= 200_000_000, "the request did not wait");
  }

  private static void invalidFault(Server server, Fork fork) throws Exception {
    contains(rejected(422, () -> fork.inject(FaultSpec.of(Effect.hangUp()).verbs("POST"))).status(), "verbs[0]");
  }

  private static void stop() throws Exception {
    Server server = Server.start();
    server.stop();
    server.stop();
    check(!Files.exists(server.kubeconfig().getParent()), "the files are there");
    throwing(ConnectException.class, () -> server.request("GET", "/version", null));
  }

  private static void startFails() throws Exception {
    contains(throwing(IOException.class, () -> Server.options().arguments("--no-such-flag").start()).getMessage(), "unknown flag: --no-such-flag");
    contains(throwing(IOException.class, () -> Server.options().program(Path.of("no-such-program")).start()).getMessage(), "install anykind");
  }

  /** The server ends with its process, even if that is killed. */
  private static void killedProcess() throws Exception {
    String program = Path.of(System.getProperty("java.home"), "bin", "java").toString();
    Process test = new ProcessBuilder(program, "-cp", System.getProperty("java.class.path"), KitTest.class.getName(), "server").start();
    String[] line = new BufferedReader(new InputStreamReader(test.getInputStream())).readLine().split(" ");
    test.destroyForcibly().waitFor();
    long deadline = System.nanoTime() + Duration.ofSeconds(20).toNanos();
    while (listens(URI.create(line[0]).getPort())) {
      check(System.nanoTime() < deadline, "the server still listens");
    }
    try (var files = Files.walk(Path.of(line[1]).getParent())) {
      files.sorted(Comparator.reverseOrder()).forEach(f -> f.toFile().delete());
    }
  }

  private static boolean listens(int port) throws IOException {
    try (Socket s = new Socket(InetAddress.getLoopbackAddress(), port)) {
      return s.isConnected();
    } catch (ConnectException e) {
      return false;
    }
  }

  private static void create(Endpoint server, String name) throws Exception {
    server.request("POST", CONFIG_MAPS, "{\"metadata\":{\"name\":\"" + name + "\"}}");
  }

  private static ApiException rejected(int code, Call call) throws Exception {
    ApiException e = throwing(ApiException.class, call);
    equal(e.code(), code);
    return e;
  }

  private static <E extends Exception> E throwing(Class<E> type, Call call) throws Exception {
    try {
      call.run();
    } catch (Exception e) {
      if (type.isInstance(e)) {
        return type.cast(e);
      }
      throw e;
    }
    throw new AssertionError("no " + type.getName());
  }

  private static void equal(int got, int want) {
    check(got == want, got + ", want " + want);
  }

  private static void contains(String text, String part) {
    check(text.contains(part), "no " + part + " in " + text);
  }

  private static void check(boolean holds, String message) {
    if (!holds) {
      throw new AssertionError(message);
    }
  }
}
