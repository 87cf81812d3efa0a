package main

import (
	"fmt"
	"strings"

	"github.com/spf13/pflag"
)

const (
	usageWidth  = 88 // columns of help with sections
	usageIndent = "        "
)

// writeFlag writes a flag on one line, and its usage below it, as kubectl does.
func writeFlag(out *strings.Builder, f *pflag.Flag) {
	value, usage := pflag.UnquoteUsage(f)
	name := "--" + f.Name
	if f.Shorthand != "" {
		name = "-" + f.Shorthand + ", " + name
	}
	fmt.Fprintln(out, strings.TrimRight("  "+name+" "+value, " "))
	if d := defaultOf(f); d != "" {
		usage += " (default " + d + ")"
	}
	line := usageIndent
	for word := range strings.FieldsSeq(usage) {
		if len(line) > len(usageIndent) && len(line)+len(word) > usageWidth {
			fmt.Fprintln(out, strings.TrimRight(line, " "))
			line = usageIndent
		}
		line += word + " "
	}
	fmt.Fprintln(out, strings.TrimRight(line, " "))
}

// defaultOf returns the default of a flag as help shows it, or "" for a zero value.
func defaultOf(f *pflag.Flag) string {
	switch f.DefValue {
	case "[]", "false", "0", "0s":
		return ""
	}
	return f.DefValue
}
