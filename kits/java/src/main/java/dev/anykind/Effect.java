package dev.anykind;

import java.time.Duration;

/** The effect of a fault. */
public final class Effect {
  private final Json json;

  private Effect(String type) {
    json = new Json().string("type", type);
  }

  /** The request fails with a Status. Its reason and message depend on the code. */
  public static Effect status(int code) {
    Effect e = new Effect("status");
    e.json.number("code", code);
    return e;
  }

  /** The request fails with this Status. */
  public static Effect status(int code, String reason, String message) {
    Effect e = status(code);
    e.json.string("reason", reason).string("message", message);
    return e;
  }

  /** The request fails with 429, and Retry-After in whole seconds. */
  public static Effect tooManyRequests(int retryAfterSeconds) {
    Effect e = status(429);
    e.json.number("retryAfterSeconds", retryAfterSeconds);
    return e;
  }

  /** The request waits. */
  public static Effect delay(Duration time) {
    Effect e = new Effect("delay");
    e.json.string("duration", time.toMillis() + "ms");
    return e;
  }

  /** The connection ends without a response, and the request has no effect. */
  public static Effect hangUp() {
    return new Effect("hangUp");
  }

  /** The connection ends without a response, and the request takes effect. */
  public static Effect loseAnswer() {
    return new Effect("loseAnswer");
  }

  /** Gets and lists return the state at a resourceVersion; watches send no events until the fault is removed. */
  public static Effect staleView(String resourceVersion) {
    Effect e = new Effect("staleView");
    e.json.string("resourceVersion", resourceVersion);
    return e;
  }

  /** The events of a watch wait until the fault is removed. */
  public static Effect holdEvents() {
    return new Effect("holdEvents");
  }

  Json json() {
    return json;
  }
}
