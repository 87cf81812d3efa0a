package kubeconfig

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// override overrides a cluster and a user with the options.
func (o *Options) override(c *cluster, u *user) {
	replace(&c.Server, o.Server)
	replace(&c.Proxy, o.Proxy)
	c.DisableCompression = c.DisableCompression || o.DisableCompression
	if o.CAFile != "" || o.Insecure {
		c.CAFile, c.CA, c.Insecure = o.CAFile, nil, o.Insecure
	}
	if o.TLSServerName != "" || o.Server != "" { // the name in the file belongs to another server
		c.TLSServerName = o.TLSServerName
	}
	if o.Token != "" {
		u.Token, u.TokenFile = o.Token, ""
	}
	if o.CertificateFile != "" {
		u.CertificateFile, u.Certificate = o.CertificateFile, nil
	}
	if o.KeyFile != "" {
		u.KeyFile, u.Key = o.KeyFile, nil
	}
	replace(&u.As, o.As)
	replace(&u.AsUID, o.AsUID)
	if len(o.AsGroups) > 0 {
		u.AsGroups = o.AsGroups
	}
	if len(o.AsExtra) > 0 {
		u.AsExtra = o.AsExtra
	}
}

func replace(value *string, by string) {
	if by != "" {
		*value = by
	}
}

// impersonation returns the impersonation headers of a user.
func (u *user) impersonation() (http.Header, error) {
	if u.As == "" {
		if u.AsUID != "" || len(u.AsGroups) > 0 || len(u.AsExtra) > 0 {
			return nil, errors.New("kubeconfig: impersonation has a uid, groups or extra fields, but no user: set --as")
		}
		return nil, nil
	}
	h := http.Header{"Impersonate-User": {u.As}}
	if u.AsUID != "" {
		h["Impersonate-Uid"] = []string{u.AsUID}
	}
	if len(u.AsGroups) > 0 {
		h["Impersonate-Group"] = u.AsGroups
	}
	for key, values := range u.AsExtra {
		for _, v := range values {
			h.Add("Impersonate-Extra-"+escape(key), v)
		}
	}
	return h, nil
}

// inNames are the characters that header names may have besides letters and digits, except "%",
// which escapes others.
const inNames = "!#$&'*+-.^_`|~"

// escape makes a key a valid part of a header name.
func escape(key string) string {
	var out strings.Builder
	for _, b := range []byte(key) {
		if 'a' <= b && b <= 'z' || 'A' <= b && b <= 'Z' || '0' <= b && b <= '9' || strings.IndexByte(inNames, b) >= 0 {
			out.WriteByte(b)
			continue
		}
		fmt.Fprintf(&out, "%%%02X", b)
	}
	return out.String()
}

// ParseTimeout parses a timeout as kubectl does: seconds, or a number with a unit.
func ParseTimeout(s string) (time.Duration, error) {
	if n, err := strconv.Atoi(s); err == nil {
		return time.Duration(n) * time.Second, nil
	}
	d, err := time.ParseDuration(s)
	if err != nil {
		return 0, fmt.Errorf("%q: want seconds, or a duration such as 30s or 2m", s)
	}
	return d, nil
}
