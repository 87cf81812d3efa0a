package dev.anykind;

import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.io.InterruptedIOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.security.GeneralSecurityException;
import java.security.KeyStore;
import java.security.cert.CertificateFactory;
import java.util.Base64;
import javax.net.ssl.SSLContext;
import javax.net.ssl.TrustManagerFactory;

/** A server or a fork. */
public abstract class Endpoint implements AutoCloseable {
  private final String url;
  private final String ca;
  private final String token;
  private final Path kubeconfig;
  private final HttpClient client;

  Endpoint(String url, String ca, String token, Path directory, String name) throws IOException {
    this.url = url;
    this.ca = ca;
    this.token = token;
    this.kubeconfig = directory.resolve(name + ".kubeconfig");
    this.client = HttpClient.newBuilder().sslContext(trusting(ca)).build();
    String encoded = Base64.getEncoder().encodeToString(ca.getBytes(StandardCharsets.US_ASCII));
    Server.write(kubeconfig, """
        apiVersion: v1
        kind: Config
        current-context: anykind
        clusters:
        - name: anykind
          cluster:
            server: %s
            certificate-authority-data: %s
        users:
        - name: anykind
          user:
            token: %s
        contexts:
        - name: anykind
          context:
            cluster: anykind
            user: anykind
        """.formatted(url, encoded, token));
  }

  private static SSLContext trusting(String ca) throws IOException {
    try {
      KeyStore store = KeyStore.getInstance(KeyStore.getDefaultType());
      store.load(null, null);
      store.setCertificateEntry("ca", CertificateFactory.getInstance("X.509")
          .generateCertificate(new ByteArrayInputStream(ca.getBytes(StandardCharsets.US_ASCII))));
      TrustManagerFactory trust = TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());
      trust.init(store);
      SSLContext context = SSLContext.getInstance("TLS");
      context.init(null, trust.getTrustManagers(), null);
      return context;
    } catch (GeneralSecurityException e) {
      throw new IOException(e);
    }
  }

  public String url() {
    return url;
  }

  /** The CA certificate, PEM. */
  public String ca() {
    return ca;
  }

  /** Bearer token of an administrator. */
  public String token() {
    return token;
  }

  /** A kubeconfig of the administrator. */
  public Path kubeconfig() {
    return kubeconfig;
  }

  /** Sends a request as the administrator, and returns the answer. The body is JSON, or null. */
  public String request(String method, String path, String body) throws IOException {
    return request(method, path, body, "application/json");
  }

  /** Sends a request with another type of body, such as application/merge-patch+json. */
  public String request(String method, String path, String body, String contentType) throws IOException {
    HttpRequest request = HttpRequest.newBuilder(URI.create(url + path))
        .header("Authorization", "Bearer " + token)
        .header("Accept", "application/json")
        .header("Content-Type", contentType)
        .method(method, body == null ? HttpRequest.BodyPublishers.noBody() : HttpRequest.BodyPublishers.ofString(body))
        .build();
    HttpResponse<String> answer;
    try {
      answer = client.send(request, HttpResponse.BodyHandlers.ofString());
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw new InterruptedIOException();
    }
    if (answer.statusCode() >= 400) {
      throw new ApiException(answer.statusCode(), answer.body());
    }
    return answer.body();
  }

  public Fault inject(FaultSpec fault) throws IOException {
    return new Fault(this, Json.field(request("POST", "/faults", fault.toString()), "id"));
  }

  /** All faults with their counts, as JSON. */
  public String faults() throws IOException {
    return request("GET", "/faults", null);
  }

  /** Ends all faults. */
  public void clearFaults() throws IOException {
    request("DELETE", "/faults", null);
  }

  /** Stops the server, or deletes the fork with its objects. */
  public abstract void stop() throws IOException;

  @Override
  public void close() throws IOException {
    stop();
  }
}
