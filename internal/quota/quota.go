// Package quota recognises what a cluster's resource quotas refuse.
package quota

import (
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// IsExceeded reports whether the API server refused an object for the sake of a
// quota. There is no reason of its own for that, only the admission plugin's
// text.
func IsExceeded(err error) bool {
	return apierrors.IsForbidden(err) && strings.Contains(err.Error(), "exceeded quota")
}
