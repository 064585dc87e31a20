package relay

import (
	"net/url"
	"path"
	"strings"
)

// IsAPI reports whether whoever resolves path comes to the interface below /v1:
// it has no dot segments and no second way to write them or a slash.
func IsAPI(p string) bool {
	plain, err := url.PathUnescape(p)
	return err == nil && plain == p && path.Clean(p) == strings.TrimSuffix(p, "/") && strings.HasPrefix(p, "/v1/") && !strings.Contains(p, "\\")
}
