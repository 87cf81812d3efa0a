package dev.anykind;

import java.io.IOException;

/** A fault of a server. At the end of a try statement it is removed. */
public final class Fault implements AutoCloseable {
  private final Endpoint server;
  private final String path;

  Fault(Endpoint server, String id) {
    this.server = server;
    this.path = "/faults/" + id;
  }

  /** The number of affected requests. */
  public int count() throws IOException {
    return Integer.parseInt(Json.field(server.request("GET", path, null), "count"));
  }

  /** Ends the fault. Without it, the fault ends with its server. */
  @Override
  public void close() throws IOException {
    server.request("DELETE", path, null);
  }
}
