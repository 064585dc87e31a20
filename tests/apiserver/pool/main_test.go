// Package pool_test tests the warm pools on a real API server: the controller
// as it runs in a cluster, execute's pool, and nodes that are played.
package pool_test

import (
	"testing"

	"github.com/preheat-dev/preheat/tests/cluster/stage"
)

var shared *stage.Stage

func TestMain(m *testing.M) { stage.Main(m, func(s *stage.Stage) { shared = s }) }
