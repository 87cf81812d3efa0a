module github.com/anykind/anykind/bench

go 1.26.0

require golang.org/x/net v0.57.0

require (
	github.com/anykind/anykind v0.0.0 // indirect
	github.com/rogpeppe/go-internal v1.14.1 // indirect
	go.yaml.in/yaml/v2 v2.4.4 // indirect
	golang.org/x/text v0.40.0 // indirect
	sigs.k8s.io/yaml v1.6.0 // indirect
)

require github.com/anykind/anykind/test v0.0.0

replace (
	github.com/anykind/anykind => ../
	github.com/anykind/anykind/test => ../test
)
