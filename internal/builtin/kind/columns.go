package kind

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/resource"
)

// AgeColumn shows how old an object is.
func AgeColumn() resource.Column {
	return resource.Column{
		Name: "Age", Type: "string", Description: metav1.ObjectMeta{}.SwaggerDoc()["creationTimestamp"],
		Cell: func(obj map[string]any) any { return Age(object.MetaString(obj, "creationTimestamp")) },
	}
}

// Age is the cell of a timestamp that may not be there.
func Age(timestamp string) any {
	if timestamp == "" {
		return "<unknown>"
	}
	return resource.Age(timestamp)
}
