package dev.anykind;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;

/** A copy of a server, from the moment of the call of fork(). Neither sees the changes of the other. */
public final class Fork extends Endpoint {
  private final Server server;
  private final String name;

  Fork(Server server, Path directory, String name, String path) throws IOException {
    super(server.url() + path, server.ca(), server.token(), directory, name);
    this.server = server;
    this.name = name;
  }

  public String name() {
    return name;
  }

  @Override
  public void stop() throws IOException {
    server.request("DELETE", "/forks/" + name, null);
    Files.deleteIfExists(kubeconfig());
  }
}
