package resource

import "testing"

func TestKeys(t *testing.T) {
	widgets := CustomPrefix("example.com", "widgets")
	for _, test := range []struct{ got, want string }{
		{BuiltInPrefix("configmaps"), "/registry/configmaps/"},
		{BuiltInPrefix("services/specs"), "/registry/services/specs/"},
		{widgets, "/registry/example.com/widgets/"},
		{(&Definition{StoragePrefix: widgets, Namespaced: true}).Key("dev", "a"), "/registry/example.com/widgets/dev/a"},
		{(&Definition{StoragePrefix: widgets}).Key("", "a"), "/registry/example.com/widgets/a"},
	} {
		if test.got != test.want {
			t.Errorf("got %s, want %s", test.got, test.want)
		}
	}
	for key, want := range map[string]string{widgets: "", widgets + "a": "a", widgets + "dev/a": "dev/a"} {
		if group, plural, rest := SplitCustom(key); group != "example.com" || plural != "widgets" || rest != want {
			t.Errorf("%s: group %q, plural %q, rest %q", key, group, plural, rest)
		}
	}
}
