package main

import "strings"

// releases are two releases, with the facts that both the changes of the tree and the report need.
type releases struct {
	old, new      *source
	before, after *types
	gates         facts // of the new one
}

func compareReleases(old, new *source) (r releases, err error) {
	r.old, r.new = old, new
	if r.before, r.after, err = both(readTypes, old, new); err != nil {
		return r, err
	}
	r.gates, err = readGates(new)
	return r, err
}

// both reads something of two releases.
func both[T any](read func(*source) (T, error), old, new *source) (was, is T, err error) {
	if was, err = read(old); err != nil {
		return was, is, err
	}
	is, err = read(new)
	return was, is, err
}

// sectionsOf compares two releases.
func sectionsOf(t *tree, r releases, from string) ([]section, error) {
	m := mapper{tree: t, rows: readTables(t)}
	before, after := r.before, r.after
	var out []section
	out = append(out,
		section{"Rows of our tables", "Words that the tags of the new release have and our tables lack, and with a minus the reverse.", r.places(m.rows, false)},
		section{"Tags of validation", "Words for new tags that kube-apiserver validates, and our tables lack: a word, or a Go function has the rule.", r.places(m.rows, true)},
		m.section("Kinds", "Types with a REST resource: markers of clients and of the lifecycle.", before.kinds, after.kinds, m.kind),
		m.section("Fields", "Types and fields: Go type, JSON options, requirement, tags. Documentation follows the modules.", before.fields, after.fields, m.field),
		m.section("Enums", "Values of text types with an enum.", before.enums, after.enums, nil),
		m.section("Generated validation", "Packages whose tags kube-apiserver validates.", before.packages, after.packages, nil),
	)
	for _, s := range []struct {
		title, note string
		read        func(*source) (facts, error)
		places      func(change) []place
	}{
		{"Served versions", "Versions and resources, and the lists of kube-apiserver that have them.", readServed, m.kind},
		{"Gates", "make bump writes " + gatesFile + ".", readGates, m.gate},
		{"Flags", "Flags of kube-apiserver: type, default, usage.", readFlags, m.named(flagsFile)},
		{"Metrics", "Metrics: type and stability.", readMetrics, m.named(metricsFile)},
		{"Roles", "Default roles and bindings.", readRoles, m.role},
		{"Admission plugins", "The order of kube-apiserver.", readPlugins, m.plugin},
		{"CEL", "Overloads of functions in the libraries of kube-apiserver.", readOverloads, m.overload},
		{"Required modules", "Modules that k8s.io/apiserver requires, of which go mod tidy takes the newest versions.", readRequired, m.required},
	} {
		was, is, err := both(s.read, r.old, r.new)
		if err != nil {
			return nil, err
		}
		out = append(out, m.section(s.title, s.note, was, is, s.places))
	}
	was, is, err := both(readCode, r.old, r.new)
	if err != nil {
		return nil, err
	}
	uses, err := changedUses(t, r.old, r.new)
	if err != nil {
		return nil, err
	}
	return append(out,
		m.section("Texts", "Texts of errors and warnings.", was.messages, is.messages, m.message),
		m.byPackage("Defaults", "Functions that set defaults, by package, with the numbers of changed lines.", was.defaults, is.defaults),
		m.byPackage("Validation", "Functions of validation and of strategies.", was.validation, is.validation),
		m.byPackage("Code", "Other functions whose behaviour clients can notice.", was.functions, is.functions),
		section{"Names in our code", "Functions, types and values that our code uses, and the new release has otherwise or not.", uses},
		mentions(t, from),
	), nil
}

// mentions returns the places that name the older release.
func mentions(t *tree, from string) section {
	s := section{title: "Names of the release", note: "Lines that name the older release."}
	short := strings.Join(strings.Split(strings.TrimPrefix(from, "v"), ".")[:2], ".")
	for _, p := range t.with(short, "") {
		if !strings.HasSuffix(p.file, "go.mod") {
			s.findings = append(s.findings, finding{name: short, places: []place{p}})
		}
	}
	return s
}
