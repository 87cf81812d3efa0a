// Package controllers runs controllers of published operators with the faults of envtest/verify. Its tests have the
// build tag verify, because they need many modules: make verify.
package controllers
