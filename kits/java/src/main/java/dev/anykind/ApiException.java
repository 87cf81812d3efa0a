package dev.anykind;

import java.io.IOException;

/** The server rejected a request. */
public final class ApiException extends IOException {
  private static final long serialVersionUID = 1;

  private final int code;
  private final String status;

  ApiException(int code, String status) {
    super(code + ": " + status);
    this.code = code;
    this.status = status;
  }

  /** The code of HTTP. */
  public int code() {
    return code;
  }

  /** The Status of the answer, as JSON. */
  public String status() {
    return status;
  }
}
