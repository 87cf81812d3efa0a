package dev.anykind;

import java.io.BufferedReader;
import java.io.File;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.security.SecureRandom;
import java.util.ArrayList;
import java.util.Base64;
import java.util.Comparator;
import java.util.HexFormat;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;

/** A running server. It ends with stop(), with a try statement, and with this process. */
public final class Server extends Endpoint {
  private static final int START_SECONDS = 30;
  private static final int STOP_SECONDS = 10;

  private final Process process;
  private final Path directory;
  private final Thread atExit;
  private final AtomicInteger forks = new AtomicInteger();

  private Server(Process process, String url, String ca, String token, Path directory) throws IOException {
    super(url, ca, token, directory, "anykind");
    this.process = process;
    this.directory = directory;
    this.atExit = new Thread(() -> end(process, directory));
    Runtime.getRuntime().addShutdownHook(atExit);
  }

  /** Settings of a server. */
  public static final class Options {
    private Path crds;
    private Path program;
    private final List<String> arguments = new ArrayList<>();

    private Options() {}

    /** File or folder with CustomResourceDefinitions. */
    public Options crds(Path fileOrFolder) {
      crds = fileOrFolder;
      return this;
    }

    /** Path of the program; the default is the environment variable ANYKIND, then anykind in PATH. */
    public Options program(Path path) {
      program = path;
      return this;
    }

    /** Further flags of anykind serve. */
    public Options arguments(String... flags) {
      arguments.addAll(List.of(flags));
      return this;
    }

    /** Starts the server, and returns when it is ready. */
    public Server start() throws IOException, InterruptedException {
      return Server.start(this);
    }
  }

  public static Options options() {
    return new Options();
  }

  /** Starts a server with the default settings. */
  public static Server start() throws IOException, InterruptedException {
    return options().start();
  }

  private static Server start(Options o) throws IOException, InterruptedException {
    String program = o.program != null ? o.program.toString() : System.getenv().getOrDefault("ANYKIND", "anykind");
    Path directory = Files.createTempDirectory("anykind-");
    Process process = null;
    try {
      byte[] random = new byte[16];
      new SecureRandom().nextBytes(random);
      String token = HexFormat.of().formatHex(random);
      Path tokens = directory.resolve("tokens.csv");
      write(tokens, token + ",anykind-kit,anykind-kit,system:masters\n");
      List<String> command = new ArrayList<>(List.of(program, "serve", "--in-memory", "--data-dir", directory.toString(),
          "--secure-port", "0", "--token-auth-file", tokens.toString(), "--fault-injection", "--stop-with-stdin"));
      if (o.crds != null) {
        command.addAll(List.of("--crds", o.crds.toString()));
      }
      command.addAll(o.arguments);
      File log = directory.resolve("server.log").toFile();
      try {
        process = new ProcessBuilder(command).redirectError(log).start();
      } catch (IOException e) {
        throw new IOException(program + " did not start: install anykind, or set the environment variable ANYKIND", e);
      }
      String url = ready(process, log.toPath());
      Matcher ca = Pattern.compile("certificate-authority-data: (\\S+)").matcher(Files.readString(directory.resolve("admin.kubeconfig")));
      if (!ca.find()) {
        throw new IOException("the kubeconfig of the server has no CA");
      }
      return new Server(process, url, new String(Base64.getDecoder().decode(ca.group(1)), StandardCharsets.US_ASCII), token, directory);
    } catch (IOException | InterruptedException | RuntimeException e) {
      end(process, directory);
      throw e;
    }
  }

  /** Waits for the line with the URL, which the server prints when it is ready. */
  private static String ready(Process process, Path log) throws IOException, InterruptedException {
    CompletableFuture<Void> late = CompletableFuture.runAsync(process::destroyForcibly,
        CompletableFuture.delayedExecutor(START_SECONDS, TimeUnit.SECONDS));
    String line = new BufferedReader(new InputStreamReader(process.getInputStream(), StandardCharsets.UTF_8)).readLine();
    late.cancel(true);
    Matcher url = Pattern.compile("listens on (https://\\S+)").matcher(line == null ? "" : line);
    if (!url.find()) {
      process.destroyForcibly();
      throw new IOException("anykind serve ended with code " + process.waitFor() + ": " + Files.readString(log));
    }
    return url.group(1);
  }

  /** Writes a file that only this user can read: the directory has the mode 0700. */
  static void write(Path file, String content) throws IOException {
    Files.writeString(file, content);
  }

  /** Copies the server in a millisecond. */
  public Fork fork() throws IOException {
    String made = request("POST", "/forks", new Json().string("name", "test-" + forks.incrementAndGet()).toString());
    return new Fork(this, directory, Json.field(made, "name"), Json.field(made, "path"));
  }

  /** Path of the log of the server. */
  public Path log() {
    return directory.resolve("server.log");
  }

  /** Stops the server, and removes its files. A second call does nothing. */
  @Override
  public void stop() {
    end(process, directory);
    try {
      Runtime.getRuntime().removeShutdownHook(atExit);
    } catch (IllegalStateException e) {
      // The process is ending.
    }
  }

  private static void end(Process process, Path directory) {
    if (process != null) {
      try {
        process.getOutputStream().close();
        if (!process.waitFor(STOP_SECONDS, TimeUnit.SECONDS)) {
          process.destroyForcibly();
        }
      } catch (IOException e) {
        process.destroyForcibly();
      } catch (InterruptedException e) {
        process.destroyForcibly();
        Thread.currentThread().interrupt();
      }
    }
    try (Stream<Path> files = Files.walk(directory)) {
      files.sorted(Comparator.reverseOrder()).forEach(file -> file.toFile().delete());
    } catch (NoSuchFileException e) {
      // It was removed before.
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }
}
