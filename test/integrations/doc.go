// Package integrations runs the files in integrations, and the action, with published programs: Helm 3, Helm 4, and
// act, which runs workflows of GitHub.
//
// Each script is one program. Run one with go test -run TestIntegrations/NAME. Package check has the everyday tests of the
// same files, without these programs.
package integrations
