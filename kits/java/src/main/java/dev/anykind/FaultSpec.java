package dev.anykind;

/**
 * Selected requests and their fault. A list that is not set selects everything, except that of subresources:
 * without it, requests for subresources are not selected.
 */
public final class FaultSpec {
  private final Json json = new Json();

  private FaultSpec(Effect effect) {
    json.object("effect", effect.json());
  }

  public static FaultSpec of(Effect effect) {
    return new FaultSpec(effect);
  }

  /** Verbs of Kubernetes, also read and write. */
  public FaultSpec verbs(String... verbs) {
    json.strings("verbs", verbs);
    return this;
  }

  /** API groups; "" is the core group. */
  public FaultSpec groups(String... groups) {
    json.strings("groups", groups);
    return this;
  }

  /** Plurals, such as configmaps. */
  public FaultSpec resources(String... resources) {
    json.strings("resources", resources);
    return this;
  }

  /** Names such as status; "" is the object itself, and "*" is all. */
  public FaultSpec subresources(String... subresources) {
    json.strings("subresources", subresources);
    return this;
  }

  public FaultSpec namespaces(String... namespaces) {
    json.strings("namespaces", namespaces);
    return this;
  }

  public FaultSpec names(String... names) {
    json.strings("names", names);
    return this;
  }

  public FaultSpec users(String... users) {
    json.strings("users", users);
    return this;
  }

  /** Prefixes of the header User-Agent. */
  public FaultSpec userAgents(String... prefixes) {
    json.strings("userAgents", prefixes);
    return this;
  }

  /** The number of first requests without the fault. */
  public FaultSpec skip(int requests) {
    json.number("skip", requests);
    return this;
  }

  /** The number of requests with the fault; -1 is all. The default is 1. */
  public FaultSpec times(int requests) {
    json.number("times", requests);
    return this;
  }

  /** The fault as JSON. */
  @Override
  public String toString() {
    return json.toString();
  }
}
