package dev.anykind;

import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;

/** A JSON object that is being written. */
final class Json {
  private final Map<String, String> fields = new LinkedHashMap<>();

  Json string(String name, String value) {
    return raw(name, quote(value));
  }

  Json strings(String name, String... values) {
    return raw(name, Arrays.stream(values).map(Json::quote).collect(Collectors.joining(",", "[", "]")));
  }

  Json number(String name, long value) {
    return raw(name, Long.toString(value));
  }

  Json object(String name, Json value) {
    return raw(name, value.toString());
  }

  private Json raw(String name, String value) {
    fields.put(name, value);
    return this;
  }

  @Override
  public String toString() {
    return fields.entrySet().stream().map(f -> quote(f.getKey()) + ":" + f.getValue()).collect(Collectors.joining(",", "{", "}"));
  }

  static String quote(String value) {
    StringBuilder out = new StringBuilder("\"");
    for (char c : value.toCharArray()) {
      if (c == '"' || c == '\\') {
        out.append('\\').append(c);
      } else if (c < ' ') {
        out.append(String.format("\\u%04x", (int) c));
      } else {
        out.append(c);
      }
    }
    return out.append('"').toString();
  }

  /** Returns the last string or number with a name in an answer of /faults or /forks, which have no escapes there. */
  static String field(String answer, String name) {
    Matcher m = Pattern.compile(quote(name) + ":\"?([^\",}]*)").matcher(answer);
    String found = null;
    while (m.find()) {
      found = m.group(1);
    }
    if (found == null) {
      throw new IllegalStateException("no field " + name + " in " + answer);
    }
    return found;
  }
}
