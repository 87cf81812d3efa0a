package main

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/anykind/anykind/internal/offline/check"
)

// addReportOutput is addOutput for reports.
func addReportOutput(flags *pflag.FlagSet, o *outputFlag) {
	addOutput(flags, o, "output format: text, json, sarif, junit, github (workflow annotations), krm (a ResourceList), or yaml (the objects that a server would store)",
		"text", "json", "yaml", "sarif", "junit", "github", "krm")
}

// writeReport writes a report in the output format. If it writes objects, findings go to standard error.
func writeReport(cmd *cobra.Command, report *check.Report, output *outputFlag) error {
	withText := func(write func(io.Writer) error) func(io.Writer) error {
		return func(w io.Writer) error { return errors.Join(write(w), report.WriteText(cmd.ErrOrStderr())) }
	}
	write := map[string]func(io.Writer) error{
		"text": report.WriteText, "json": report.WriteJSON, "sarif": report.WriteSARIF, "junit": report.WriteJUnit, "github": report.WriteGitHub,
		"yaml": withText(report.WriteYAML), "krm": withText(report.WriteKRM),
	}
	return write[output.form](cmd.OutOrStdout())
}

// verdictOf returns the error of a command with findings.
func verdictOf(s check.Summary) error {
	switch {
	case s.Refused > 0:
		return fmt.Errorf("refused objects: %d", s.Refused)
	case s.Lossy > 0:
		return fmt.Errorf("objects that lose fields in another version: %d", s.Lossy)
	case s.Unknown > 0:
		return unsureError{fmt.Errorf("objects that could not be checked: %d", s.Unknown)}
	}
	return nil
}

// validationFlag is --validate of kubectl.
type validationFlag string

func (v *validationFlag) String() string    { return strings.ToLower(string(*v)) }
func (v *validationFlag) Type() string      { return "string" }
func (v *validationFlag) choices() []string { return []string{"strict", "warn", "ignore"} }
func (v *validationFlag) Set(s string) error {
	known := map[string]validationFlag{
		"strict": metav1.FieldValidationStrict, "true": metav1.FieldValidationStrict,
		"warn":   metav1.FieldValidationWarn,
		"ignore": metav1.FieldValidationIgnore, "false": metav1.FieldValidationIgnore,
	}
	if known[s] == "" {
		return errors.New("want strict, warn or ignore")
	}
	*v = known[s]
	return nil
}
