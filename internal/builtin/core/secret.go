package core

import (
	"crypto/tls"
	"encoding/base64"
	"encoding/json"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/anykind/anykind/internal/builtin/kind"
	"github.com/anykind/anykind/internal/builtin/rule"
	"github.com/anykind/anykind/internal/object/resource"
)

func secrets() *resource.Definition {
	return kind.Kind[*corev1.Secret, *corev1.SecretList]{
		Definition: resource.Definition{
			Plural: "secrets", Namespaced: true,
			Strategy: resource.Strategy{
				AllowUnconditionalUpdate: true,
				Prepare:                  resource.Changing(func(obj, _ map[string]any) { kind.EmptyNulls(obj, "data") }),
			},
		},
		Default:  decodeSecret,
		Validate: validateSecret,
		Warn:     warnOfSecret,
		Columns: `
			Type  string  .type
			Data  string  data   .data
			Age
		`,
		Cells:  kind.Cells{"data": func(obj map[string]any) any { return int64(len(kind.Tree(obj, "data"))) }},
		Select: "type",
	}.New()
}

// decodeSecret moves stringData into data, with precedence.
func decodeSecret(obj map[string]any) {
	kind.SetDefault(obj, "type", string(corev1.SecretTypeOpaque))
	for key, v := range kind.Tree(obj, "stringData") {
		s, _ := v.(string)
		kind.Child(obj, "data")[key] = base64.StdEncoding.EncodeToString([]byte(s))
	}
	delete(obj, "stringData")
}

func validateSecret(c *rule.Check, s, old *corev1.Secret) {
	if old != nil {
		c.At("type").Immutable(s.Type, old.Type)
		if isFrozen(c, s.Immutable, old.Immutable) {
			frozen(c.At("data"), s.Data, old.Data)
		}
	}
	data, size := c.At("data"), 0
	for _, key := range kind.SortedKeys(s.Data) {
		data.AtKey(key).Invalids(key, validation.IsConfigMapKey(key))
		size += len(s.Data[key])
	}
	if size > corev1.MaxSecretSize {
		data.TooLong(corev1.MaxSecretSize)
	}
	validateSecretType(c, s)
}

// validateSecretType checks the keys that a type of Secret requires.
func validateSecretType(c *rule.Check, s *corev1.Secret) {
	data := c.At("data")
	has := func(key string) bool {
		_, ok := s.Data[key]
		return ok
	}
	require := func(keys ...string) {
		for _, key := range keys {
			if !has(key) {
				data.AtKey(key).Required("")
			}
		}
	}
	requireJSON := func(key string) {
		if require(key); !has(key) {
			return
		}
		if err := json.Unmarshal(s.Data[key], &map[string]any{}); err != nil {
			data.AtKey(key).Invalid("<secret contents redacted>", err.Error())
		}
	}
	switch s.Type {
	case corev1.SecretTypeServiceAccountToken:
		if s.Annotations[corev1.ServiceAccountNameKey] == "" {
			c.At("metadata", "annotations").AtKey(corev1.ServiceAccountNameKey).Required("")
		}
	case corev1.SecretTypeDockercfg:
		requireJSON(corev1.DockerConfigKey)
	case corev1.SecretTypeDockerConfigJson:
		requireJSON(corev1.DockerConfigJsonKey)
	case corev1.SecretTypeBasicAuth:
		// One of the keys is enough. It may be empty.
		if !has(corev1.BasicAuthUsernameKey) && !has(corev1.BasicAuthPasswordKey) {
			require(corev1.BasicAuthUsernameKey, corev1.BasicAuthPasswordKey)
		}
	case corev1.SecretTypeSSHAuth:
		if len(s.Data[corev1.SSHAuthPrivateKey]) == 0 {
			data.AtKey(corev1.SSHAuthPrivateKey).Required("")
		}
	case corev1.SecretTypeTLS:
		require(corev1.TLSCertKey, corev1.TLSPrivateKeyKey)
	}
}

// warnOfSecret warns about a certificate and a key that do not match.
func warnOfSecret(c *rule.Check, s, _ *corev1.Secret) {
	if s.Type != corev1.SecretTypeTLS {
		return
	}
	if _, err := tls.X509KeyPair(s.Data[corev1.TLSCertKey], s.Data[corev1.TLSPrivateKeyKey]); err != nil {
		c.Warn("%s", err)
	}
}
