// Command kubectl is the published kubectl, built from its module.
//
// The tests run it as users do, as a separate program that knows nothing of
// anykind. It is a module of its own, so that none of what kubectl needs gets
// into the product. The version in go.mod is the one anykind speaks.
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
