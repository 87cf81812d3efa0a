package gate

import (
	"slices"
	"strings"
	"testing"

	"github.com/anykind/anykind/internal/object/kubernetes"
)

// Values are those of Kubernetes, and so are its errors.
func TestFlag(t *testing.T) {
	for _, tt := range []struct{ given, on, off, err string }{
		{given: "", on: "HPAScaleToZero", off: "ShardedListAndWatch"},
		{given: "ShardedListAndWatch=true,HPAScaleToZero=false", on: "ShardedListAndWatch", off: "HPAScaleToZero"},
		{given: " kube:ShardedListAndWatch = true , ", on: "ShardedListAndWatch"},
		{given: "AllAlpha=true,AllBeta=true", on: "ShardedListAndWatch HPAScaleToZero GenericWorkload", off: "QOSReserved"},
		{given: "AllAlpha=true,AllBeta=true,ShardedListAndWatch=false", on: "VolumeBindMountOptions", off: "ShardedListAndWatch"},
		{given: "AllBeta=false,DRADeviceTaintRules=false", off: "HPAScaleToZero"},
		{given: "WatchList=true,GitRepoVolumeDriver=false", on: "WatchList"},
		{given: "GitRepoVolumeDriver=true", err: "cannot set feature gate GitRepoVolumeDriver to true, feature is locked to false"},
		{given: "Unknown=true", err: "unrecognized feature gate: Unknown"},
		{given: "WatchList", err: "missing bool value for WatchList"},
		{given: "WatchList=1x", err: `invalid value of WatchList=1x, err: strconv.ParseBool: parsing "1x": invalid syntax`},
		{given: "CompositePodGroup=true", err: "CompositePodGroup is enabled, but depends on features that are disabled: [GenericWorkload TopologyAwareWorkloadScheduling]"},
	} {
		var f Flag
		err := f.Set(tt.given)
		gates, conflict := f.Gates()
		if err == nil {
			err = conflict
		}
		if tt.err != "" {
			if err == nil || err.Error() != tt.err {
				t.Errorf("%s: %v, want %s", tt.given, err, tt.err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", tt.given, err)
		}
		for name := range strings.FieldsSeq(tt.on) {
			if !gates.On(Name(name)) {
				t.Errorf("%s: %s is off", tt.given, name)
			}
		}
		for name := range strings.FieldsSeq(tt.off) {
			if gates.On(Name(name)) {
				t.Errorf("%s: %s is on", tt.given, name)
			}
		}
	}
}

func TestCurrent(t *testing.T) {
	if Current.String() != kubernetes.Name {
		t.Errorf("Current is %s, want %s", Current, kubernetes.Name)
	}
}

// The flags of versions change gates as in Kubernetes. The errors are those of Kubernetes.
func TestEmulated(t *testing.T) {
	for _, tt := range []struct{ emulated, compatible, gates, on, off, releases, err string }{
		{releases: "1.37 1.36", on: "HPAScaleToZero"},
		{emulated: "1.37", releases: "1.37 1.36", on: "HPAScaleToZero"},
		{emulated: "1.35", releases: "1.35 1.34", on: "ClearingNominatedNodeNameAfterBinding", off: "HPAScaleToZero"},
		{emulated: "kube=1.34", releases: "1.34 1.34", off: "ClearingNominatedNodeNameAfterBinding"},
		{emulated: "1.36", compatible: "1.36", releases: "1.36 1.36"},
		{emulated: "1.36", gates: "HPAScaleToZero=true", on: "HPAScaleToZero", releases: "1.36 1.35"},
		{compatible: "1.37", releases: "1.37 1.37"},
		{emulated: "1.33", err: "emulation version 1.33 is not between [1.34, 1.37.0]\nminCompatibilityVersion version 1.34 is not between [1.34, 1.33]"},
		{emulated: "1.36", compatible: "1.37", err: "minCompatibilityVersion version 1.37 is not between [1.34, 1.36]"},
		{emulated: "1.36.1", err: "patch version not allowed, got: kube=1.36.1"},
		{emulated: "wardle=1.2", err: "component not registered: wardle"},
		{emulated: "x", err: `could not parse "x" as version`},
		{emulated: "1.35", gates: "GenericWorkload=false,ShardedListAndWatch=true", err: "cannot set feature gate ShardedListAndWatch to true, feature is PreAlpha at emulated version 1.35, min compatibility version 1.34"},
	} {
		f := Flag{Emulated: strings.Fields(tt.emulated), Compatible: strings.Fields(tt.compatible)}
		if err := f.Set(tt.gates); err != nil {
			t.Fatal(err)
		}
		gates, err := f.Gates()
		if err != nil || tt.err != "" {
			if err == nil || err.Error() != tt.err {
				t.Errorf("%v: %v, want %s", tt, err, tt.err)
			}
			continue
		}
		if got := gates.Emulated().String() + " " + gates.Compatible().String(); got != tt.releases {
			t.Errorf("%v: releases %s", tt, got)
		}
		for name := range strings.FieldsSeq(tt.on) {
			if !gates.On(Name(name)) {
				t.Errorf("%v: %s is off", tt, name)
			}
		}
		for name := range strings.FieldsSeq(tt.off) {
			if gates.On(Name(name)) {
				t.Errorf("%v: %s is on", tt, name)
			}
		}
	}
}

// Gates that do not change this server keep their defaults.
func TestIdle(t *testing.T) {
	var f Flag
	if err := f.Set("QOSReserved=true,HPAScaleToZero=false"); err != nil {
		t.Fatal(err)
	}
	gates, err := f.Gates()
	if err != nil || gates.On("QOSReserved") || !slices.Equal(gates.Idle(), []Name{"QOSReserved"}) || !slices.Equal(gates.Changed(), []Name{"HPAScaleToZero"}) {
		t.Errorf("changed %v, idle %v, %v", gates.Changed(), gates.Idle(), err)
	}
}

// The quick reading of the table agrees with the whole one, for the next release, too.
func TestDefaults(t *testing.T) {
	gates, err := parse(table)
	if err != nil {
		t.Fatal(err)
	}
	all := gates.GetAllVersioned()
	if len(all) != len(defaults()) {
		t.Errorf("%d gates, want %d", len(defaults()), len(all))
	}
	for name := range all {
		if on, known := defaults()[Name(name)]; !known || on != gates.Enabled(name) {
			t.Errorf("%s: %t, %t", name, on, known)
		}
	}
}

// Several flags add up.
func TestFlags(t *testing.T) {
	var f Flag
	for _, text := range []string{"WatchList=true", "HPAScaleToZero=false", "ShardedListAndWatch=true"} {
		if err := f.Set(text); err != nil {
			t.Fatal(err)
		}
	}
	if got, want := f.String(), "HPAScaleToZero=false,ShardedListAndWatch=true,WatchList=true"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	gates, err := f.Gates()
	if got, want := gates.Changed(), []Name{"HPAScaleToZero", "ShardedListAndWatch"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("%v, %v, want %v", got, err, want)
	}
	var none *Set
	if !none.On("HPAScaleToZero") || none.On("ShardedListAndWatch") || none.Changed() != nil {
		t.Error("the nil Set has no defaults")
	}
}
