// Package integrations runs the files in integrations with the published Helm 3 and Helm 4. It runs the action with the
// published act, a runner for workflows of GitHub.
//
// Each script is one program. Run one with go test -run TestIntegrations/NAME. Package check has the everyday tests of the
// same files, without these programs.
package integrations
