/**
 * A Kubernetes API server for tests: start, fork, inject faults.
 *
 * <p>The package uses the JDK only. It has no JSON: requests and answers are strings, for the JSON library
 * of the test.
 */
package dev.anykind;
