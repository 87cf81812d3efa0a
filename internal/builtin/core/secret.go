package core

import (
	"crypto/tls"
	"encoding/base64"
	"encoding/json"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/anykind/anykind/internal/builtin/kind"
	"github.com/anykind/anykind/internal/resource"
)

func secrets() *resource.Definition {
	return kind.New(resource.Definition{
		Plural: "secrets", Singular: "secret", Kind: "Secret",
		Namespaced: true, GroupPriority: kind.CorePriority,
		Strategy: resource.Strategy{
			AllowUnconditionalUpdate: true,
			Prepare:                  resource.Changing(func(obj, _ map[string]any) { kind.EmptyNulls(obj, "data") }),
			Validate:                 resource.Looking(validateSecret),
			Warn:                     resource.Looking(warnSecret),
		},
	}, kind.VersionOf[corev1.Secret, corev1.SecretList](&resource.Version{
		Name: "v1",
		SelectableFields: map[string]func(map[string]any) string{
			"type": func(obj map[string]any) string { return kind.Text(obj, "type") },
		},
		Columns: []resource.Column{
			{
				Name: "Type", Type: "string", Description: corev1.Secret{}.SwaggerDoc()["type"],
				Cell: func(obj map[string]any) any { return kind.Text(obj, "type") },
			},
			{
				Name: "Data", Type: "string", Description: corev1.Secret{}.SwaggerDoc()["data"],
				Cell: func(obj map[string]any) any { return int64(len(kind.Tree(obj, "data"))) },
			},
			kind.AgeColumn(),
		},
	}, marks()).WhenDecoded(decodeSecret))
}

// decodeSecret puts into data what a client wrote as stringData, which wins.
func decodeSecret(obj map[string]any) {
	kind.SetDefault(obj, "type", string(corev1.SecretTypeOpaque))
	for key, v := range kind.Tree(obj, "stringData") {
		s, _ := v.(string)
		kind.Child(obj, "data")[key] = base64.StdEncoding.EncodeToString([]byte(s))
	}
	delete(obj, "stringData")
}

func validateSecret(obj, old map[string]any) field.ErrorList {
	var errs field.ErrorList
	if old != nil {
		errs = kind.Immutable(kind.Text(obj, "type"), kind.Text(old, "type"), field.NewPath("type"))
		errs = append(errs, kind.Frozen(obj, old, "data")...)
	}
	errs = append(errs, kind.MetaFinalizers(obj)...)
	data, at := kind.Tree(obj, "data"), field.NewPath("data")
	size := 0
	for _, key := range sortedKeys(data) {
		errs = append(errs, validateKey(key, at.Key(key))...)
		size += decodedLen(data[key])
	}
	if size > corev1.MaxSecretSize {
		errs = append(errs, field.TooLong(at, "", corev1.MaxSecretSize))
	}
	return append(errs, validateSecretType(obj)...)
}

// validateSecretType checks that a secret has what its type promises.
func validateSecretType(obj map[string]any) field.ErrorList {
	data, at := kind.Tree(obj, "data"), field.NewPath("data")
	var errs field.ErrorList
	require := func(keys ...string) {
		for _, key := range keys {
			if _, ok := data[key]; !ok {
				errs = append(errs, field.Required(at.Key(key), ""))
			}
		}
	}
	switch corev1.SecretType(kind.Text(obj, "type")) {
	case corev1.SecretTypeServiceAccountToken:
		if kind.Text(obj, "metadata", "annotations", corev1.ServiceAccountNameKey) == "" {
			errs = append(errs, field.Required(field.NewPath("metadata", "annotations").Key(corev1.ServiceAccountNameKey), ""))
		}
	case corev1.SecretTypeDockercfg:
		return validateJSON(data, corev1.DockerConfigKey, at)
	case corev1.SecretTypeDockerConfigJson:
		return validateJSON(data, corev1.DockerConfigJsonKey, at)
	case corev1.SecretTypeBasicAuth:
		// One of the two is enough, and may be empty.
		if require(corev1.BasicAuthUsernameKey, corev1.BasicAuthPasswordKey); len(errs) == 1 {
			return nil
		}
	case corev1.SecretTypeSSHAuth:
		if decodedLen(data[corev1.SSHAuthPrivateKey]) == 0 {
			errs = append(errs, field.Required(at.Key(corev1.SSHAuthPrivateKey), ""))
		}
	case corev1.SecretTypeTLS:
		require(corev1.TLSCertKey, corev1.TLSPrivateKeyKey)
	}
	return errs
}

func validateJSON(data map[string]any, key string, at *field.Path) field.ErrorList {
	if _, ok := data[key]; !ok {
		return field.ErrorList{field.Required(at.Key(key), "")}
	}
	if err := json.Unmarshal(decoded(data, key), &map[string]any{}); err != nil {
		return field.ErrorList{field.Invalid(at.Key(key), "<secret contents redacted>", err.Error())}
	}
	return nil
}

func decoded(data map[string]any, key string) []byte {
	s, _ := data[key].(string)
	b, _ := base64.StdEncoding.DecodeString(s)
	return b
}

// warnSecret says when a certificate and its key do not belong together.
func warnSecret(obj, _ map[string]any) []string {
	if kind.Text(obj, "type") != string(corev1.SecretTypeTLS) {
		return nil
	}
	data := kind.Tree(obj, "data")
	if _, err := tls.X509KeyPair(decoded(data, corev1.TLSCertKey), decoded(data, corev1.TLSPrivateKeyKey)); err != nil {
		return []string{err.Error()}
	}
	return nil
}
