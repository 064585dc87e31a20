package inside

import (
	"testing"

	"github.com/preheat-dev/preheat/api/execution"
	"github.com/preheat-dev/preheat/tests/product"
)

// TestS12ProcessorsOfTheSandbox: what sizes pools of threads and processes finds the
// sandbox's one processor, not the machine's, and the caller's own number before it.
func TestS12ProcessorsOfTheSandbox(t *testing.T) {
	t.Parallel()
	const pools = `import concurrent.futures, multiprocessing, os
print(os.cpu_count(), os.process_cpu_count(), multiprocessing.cpu_count(), concurrent.futures.ThreadPoolExecutor()._max_workers)`
	for name, test := range map[string]struct {
		language, code string
		env            map[string]string
		want           string
	}{
		"Python":               {"python", pools, nil, "1 1 1 5\n"},
		"Python, the caller's": {"python", pools, map[string]string{"PYTHON_CPU_COUNT": "3"}, "3 3 3 7\n"},
		"Python's child":       {"bash", "python3 -c 'import os; print(os.cpu_count())'", nil, "1\n"},
		"nproc":                {"bash", "nproc", nil, "1\n"},
		"nproc, the caller's":  {"bash", "nproc", map[string]string{"OMP_NUM_THREADS": "3"}, "3\n"},
		"OpenMP":               {"python", "import numpy, os\nprint(os.environ['OMP_NUM_THREADS'], len(os.listdir('/proc/self/task')))", nil, "1 1\n"},
		"OpenMP, the caller's": {"python", "import os; print(os.environ['OMP_NUM_THREADS'])", map[string]string{"OMP_NUM_THREADS": "2"}, "2\n"},
		"the heap of Node.js":  {"javascript", "console.log(require('v8').getHeapStatistics().heap_size_limit < 512 * 2**20)", nil, "true\n"},
		"Node.js in bash":      {"bash", "node -p 'require(\"v8\").getHeapStatistics().heap_size_limit < 512 * 2**20'", nil, "true\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := shared.Execute(t, execution.Request{Language: test.language, Code: test.code, Env: test.env})
			product.Ended(t, r, execution.StatusSucceeded, 0, "")
			product.Wrote(t, r, test.want, "")
		})
	}
}
