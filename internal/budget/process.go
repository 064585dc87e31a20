package budget

import (
	"errors"
	"fmt"
	"log/slog"

	"github.com/KimMachineGun/automemlimit/memlimit"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/preheat-dev/preheat/internal/metric"
)

const (
	// smallest is the least that a process's budget is by default.
	smallest = 64 << 20
	// systemShare is what part of a machine a process without a limit of its
	// own counts on.
	systemShare = 4
)

// ForProcess sets the runtime's memory limit to nine tenths of what the cgroup
// allows, unless GOMEMLIMIT has set it, and returns the process's budget: mib
// MiB, or with 0 half of what the cgroup allows, or of a quarter of the
// machine's memory where the cgroup sets no limit, but 64 MiB at least. r gets
// its size and use.
func ForProcess(mib int64, r prometheus.Registerer, log *slog.Logger) (*Budget, error) {
	if mib < 0 {
		return nil, errors.New("PREHEAT_MEMORY_BUDGET_MIB must be 0 or more")
	}
	// Where there are no cgroups the runtime's limit stays as it is.
	limit, err := memlimit.Set()
	if err != nil {
		log.Warn("The runtime's memory limit could not be set from the cgroup", "error", err)
	}
	size := mib << 20
	if size == 0 {
		if size, err = defaultSize(memlimit.FromCgroup, memlimit.FromSystem); err != nil {
			return nil, err
		}
	}
	log.Info("Memory is bounded", "runtime_limit_bytes", limit, "budget_bytes", size)
	b := New(size)
	metric.NewGaugeFunc(r, metric.MemoryBudget, func() float64 { return float64(b.Size()) })
	metric.NewGaugeFunc(r, metric.MemoryUsed, func() float64 { return float64(b.Used()) })
	return b, nil
}

// defaultSize is half of what a process may use.
func defaultSize(cgroup, system memlimit.Provider) (int64, error) {
	total, err := cgroup()
	if err != nil {
		if total, err = system(); err != nil {
			return 0, fmt.Errorf("find the machine's memory (PREHEAT_MEMORY_BUDGET_MIB sets the budget): %w", err)
		}
		total /= systemShare
	}
	return max(int64(total/2), smallest), nil
}
