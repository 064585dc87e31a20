package quota_test

import (
	"errors"
	"fmt"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/preheat-dev/preheat/internal/quota"
)

func TestIsExceeded(t *testing.T) {
	pods := schema.GroupResource{Resource: "pods"}
	text := errors.New("exceeded quota: q, requested: pods=1, used: pods=2, limited: pods=2")
	for name, test := range map[string]struct {
		err  error
		want bool
	}{
		"a quota":                {apierrors.NewForbidden(pods, "p", text), true},
		"a quota, with context":  {fmt.Errorf("create: %w", apierrors.NewForbidden(pods, "p", text)), true},
		"no right":               {apierrors.NewForbidden(pods, "p", errors.New("no")), false},
		"the text of a conflict": {apierrors.NewConflict(pods, "p", text), false},
		"nothing":                {nil, false},
	} {
		if got := quota.IsExceeded(test.err); got != test.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
