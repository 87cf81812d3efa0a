// Command kubectl is the published kubectl, built from its module.
//
// The tests run it as users do, as a separate program that knows nothing of anykind. A module of its
// own keeps kubectl's dependencies out of the product. The version in go.mod is the one that anykind
// speaks.
package main

import (
	"k8s.io/component-base/cli"
	"k8s.io/kubectl/pkg/cmd"
	"k8s.io/kubectl/pkg/cmd/util"
)

func main() {
	if err := cli.RunNoErrOutput(cmd.NewDefaultKubectlCommand()); err != nil {
		util.CheckErr(err)
	}
}
