// Package doors_test runs programs through the doors that have clients in Go, and
// looks at what the clients show.
package doors_test

import (
	"os"
	"testing"
	"time"

	"github.com/preheat-dev/preheat/tests/hostile"
	"github.com/preheat-dev/preheat/tests/product"
)

const patience = time.Minute

var shared *product.Product

func TestMain(m *testing.M) { os.Exit(product.Main(m, &shared, hostile.Environment("mcp,piston")...)) }
