package flags

import "github.com/spf13/pflag"

// sectionAnnotation is the annotation of a flag that holds the title of its section.
const sectionAnnotation = "anykind.dev/section"

// Section returns the title of the section of help that a flag belongs to, or "".
func Section(f *pflag.Flag) string {
	if titles := f.Annotations[sectionAnnotation]; len(titles) == 1 {
		return titles[0]
	}
	return ""
}

// AddSection adds the flags that add defines, as one section of help.
func AddSection(to *pflag.FlagSet, title string, add func(*pflag.FlagSet)) {
	section := pflag.NewFlagSet(title, pflag.ContinueOnError)
	section.SortFlags = false
	add(section)
	section.VisitAll(func(f *pflag.Flag) {
		f.Annotations = map[string][]string{sectionAnnotation: {title}}
		to.AddFlag(f)
	})
}
