// Package inside tests, on real sandboxes, what a program finds around it: the
// rows S1 to S3 and S8 to S12 of docs/results.md.
package inside

import (
	"os"
	"strings"
	"testing"

	"github.com/preheat-dev/preheat/api/execution"
	"github.com/preheat-dev/preheat/tests/product"
)

var shared *product.Product

func TestMain(m *testing.M) {
	os.Exit(product.Main(m, &shared, "PREHEAT_POOL_SIZE=4", "PREHEAT_JAVASCRIPT_POOL_SIZE=1", "PREHEAT_QUEUE_TIMEOUT=120s"))
}

func python(code string) execution.Request {
	return execution.Request{Language: "python", Code: code}
}

// program is one whose output is exactly known.
type program struct {
	name    string
	request execution.Request
	stdout  string
}

// succeed runs programs that must succeed and write nothing to stderr.
func succeed(t *testing.T, programs []program) {
	t.Helper()
	for _, p := range programs {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			r := shared.Execute(t, p.request)
			product.Ended(t, r, execution.StatusSucceeded, 0, "")
			product.Wrote(t, r, p.stdout, "")
		})
	}
}

func TestS1LooksLikeAScript(t *testing.T) {
	t.Parallel()
	args := python("import sys\nprint(__name__, sys.argv, __file__)")
	args.Args = []string{"-c", "two words", "", "é"}
	node := execution.Request{Language: "javascript", Code: "console.log(process.argv.slice(1), __filename, require.main === module)", Args: []string{"--x", ""}}
	shell := execution.Request{Language: "bash", Code: `printf '[%s]' "$0" "$#" "$@"`, Args: []string{"*", "a b", ""}}
	succeed(t, []program{
		{"arguments", args, "__main__ ['main.py', '-c', 'two words', '', 'é'] /work/main.py\n"},
		{"node", node, "[ '/work/main.js', '--x', '' ] /work/main.js true\n"},
		{"bash", shell, "[main.sh][3][*][a b][]"},
		{"its own source", python("import inspect\ndef f():\n    return 1  # comment\nprint(inspect.getsource(f), end='')\nf()"), "def f():\n    return 1  # comment\n"},
		{"its own file", python("print(open(__file__).read())\n1"), "print(open(__file__).read())\n1\n"},
		{"stack", python("import traceback\ndef f(): return [(x.name, x.lineno, x.filename) for x in traceback.extract_stack()]\nprint(f())\n1"),
			"[('<module>', 3, '/work/main.py'), ('f', 2, '/work/main.py')]\n"},
		{"working folder", python("import os\nprint(os.getcwd(), sorted(os.listdir()))\n1"), "/work ['main.py']\n"},
		{"names", python("print(sorted(globals()), [n for n in dir(__builtins__) if 'preheat' in n])"),
			"['__annotations__', '__builtins__', '__cached__', '__doc__', '__file__', '__loader__', '__name__', '__package__', '__spec__'] []\n"},
	})
}

func TestS1Traceback(t *testing.T) {
	t.Parallel()
	request := python("import helper\n\ndef outer():\n    helper.inner(0)\n\nouter()")
	request.Files = []execution.File{{Path: "helper.py", Content: "def inner(x):\n    return 1 % x\n"}}
	r := shared.Execute(t, request)
	product.Ended(t, r, execution.StatusFailed, 1, "")
	product.Wrote(t, r, "", `Traceback (most recent call last):
  File "/work/main.py", line 6, in <module>
    outer()
    ~~~~~^^
  File "/work/main.py", line 4, in outer
    helper.inner(0)
    ~~~~~~~~~~~~^^^
  File "/work/helper.py", line 2, in inner
    return 1 % x
           ~~^~~
ZeroDivisionError: integer modulo by zero
`)
}

func TestS2Multiprocessing(t *testing.T) {
	t.Parallel()
	pool := func(method string) execution.Request {
		return python("import multiprocessing as mp\ndef square(x): return x * x\nif __name__ == '__main__':\n" +
			"    with mp.get_context('" + method + "').Pool(2) as p: print(p.map(square, range(4)))")
	}
	succeed(t, []program{
		{"fork", pool("fork"), "[0, 1, 4, 9]\n"},
		{"spawn", pool("spawn"), "[0, 1, 4, 9]\n"},
		{"forkserver", pool("forkserver"), "[0, 1, 4, 9]\n"},
		{"executor", python("from concurrent.futures import ProcessPoolExecutor\nwith ProcessPoolExecutor(2) as e: print(list(e.map(abs, [-1, 2])))"), "[1, 2]\n"},
		{"shared memory", python("from multiprocessing.shared_memory import SharedMemory\ns = SharedMemory(create=True, size=9)\ns.buf[0] = 7\nt = SharedMemory(s.name)\nprint(t.buf[0])\nt.close(); s.close(); s.unlink()"), "7\n"},
		{"semaphore", python("import multiprocessing as mp\nwith mp.Lock(): print('locked')"), "locked\n"},
	})
}

func TestS3ThreadsAndTheEnd(t *testing.T) {
	t.Parallel()
	succeed(t, []program{
		{"threads", python("import sys, threading\nt = [threading.Thread(target=sys.stdout.write, args=('thread\\n',)) for _ in range(3)]\nfor x in t: x.start()\nfor x in t: x.join()"), "thread\nthread\nthread\n"},
		{"a thread outlives main", python("import threading, time\ndef f():\n    time.sleep(0.1); print('thread')\nthreading.Thread(target=f).start()\nprint('main')"), "main\nthread\n"},
		{"atexit", python("import atexit\natexit.register(print, 'first in, last out')\natexit.register(print, 'last in')"), "last in\nfirst in, last out\n"},
		{"signal handler", python("import os, signal\nsignal.signal(signal.SIGTERM, lambda s, f: print('got', s))\nos.kill(os.getpid(), signal.SIGTERM)"), "got 15\n"},
		{"asyncio", python("import asyncio\nasync def f():\n    await asyncio.sleep(0.01)\n    return 5\nprint(asyncio.run(f()))"), "5\n"},
		{"asyncio with processes", python("import asyncio\nasync def f():\n    p = await asyncio.create_subprocess_exec('cat', stdin=-1, stdout=-1)\n    return (await p.communicate(b'x'))[0]\nprint(asyncio.run(f()))"), "b'x'\n"},
		{"destructors", python("class C:\n    def __del__(self): print('deleted')\nc = C(); d = C(); d.me = d"), "deleted\ndeleted\n"},
	})
}

// TestS3Unflushed: what was not flushed is lost by os._exit, in so far as it
// is in plain Python with the same environment.
func TestS3Unflushed(t *testing.T) {
	t.Parallel()
	code := "import os, io\nf = io.open(1, 'w', closefd=False)\nf.write('lost'); print('kept'); os._exit(3)"
	r := shared.Python(t, code)
	product.Ended(t, r, execution.StatusFailed, 3, "")
	product.Wrote(t, r, "kept\n", "")
}

func TestS12Surroundings(t *testing.T) {
	t.Parallel()
	succeed(t, []program{
		{"locale", python("import locale, sys\nprint(locale.setlocale(locale.LC_ALL, ''), sys.stdout.encoding, sys.getfilesystemencoding(), locale.getpreferredencoding())"), "C.UTF-8 utf-8 utf-8 UTF-8\n"},
		{"time zone", python("import time, zoneinfo, datetime\nprint(time.tzname, datetime.datetime(2024, 7, 1, tzinfo=zoneinfo.ZoneInfo('Europe/Berlin')).utcoffset())"), "('UTC', 'UTC') 2:00:00\n"},
		{"home", python("import os, pathlib\np = pathlib.Path.home() / 'x'; p.write_text('y')\nprint(p, os.environ['HOME'])\nNone"), "/home/sandbox/x /home/sandbox\n"},
		{"temporary files", python("import tempfile\nwith tempfile.NamedTemporaryFile() as f: print(f.name.startswith('/tmp/'), f.write(b'x'))"), "True 1\n"},
		{"/proc/self", python("import os\nprint(os.readlink('/proc/self/cwd'), os.readlink('/proc/self') == str(os.getpid()))"), "/work True\n"},
		{"user", python("import getpass, os, pwd, grp\nprint(getpass.getuser(), pwd.getpwuid(os.getuid()).pw_name, grp.getgrgid(os.getgid()).gr_name, os.getuid(), os.getgroups())"), "sandbox sandbox sandbox 1000 []\n"},
		{"names of files", python("import os\nopen('ünï.txt', 'w').close()\nprint(sorted(os.listdir('.')), sorted(os.listdir(b'.'))); os.remove('ünï.txt')"), "['main.py', 'ünï.txt'] [b'main.py', b'\\xc3\\xbcn\\xc3\\xaf.txt']\n"},
		{"loopback", python("import socket\ns = socket.create_server(('127.0.0.1', 0))\nc = socket.create_connection(s.getsockname())\nprint(s.accept()[0].send(b'x'), c.recv(1))"), "1 b'x'\n"},
		{"own names", python("import socket\nprint(socket.gethostbyname('localhost'), socket.gethostname(), socket.gethostbyname(socket.gethostname()))"), "127.0.0.1 sandbox 127.0.0.1\n"},
		{"bash", execution.Request{Language: "bash", Code: "pwd; id -un; echo $HOME $LANG $TZ; locale charmap; echo x > /tmp/x && cat /tmp/x"}, "/work\nsandbox\n/home/sandbox C.UTF-8 Etc/UTC\nUTF-8\nx\n"},
		{"node", execution.Request{Language: "javascript", Code: "console.log(process.cwd(), os = require('os').userInfo().username, new Date(0).getTimezoneOffset(), 'é'.normalize('NFD').length)"}, "/work sandbox 0 2\n"},
	})
}

func TestS12Limits(t *testing.T) {
	t.Parallel()
	r := shared.Python(t, "import shutil\nfor d in ('/work', '/tmp', '/dev/shm', '/home/sandbox'): print(d, shutil.disk_usage(d).total >> 20)")
	product.Equal(t, "stdout", r.Stdout, "/work 128\n/tmp 128\n/dev/shm 128\n/home/sandbox 128\n")
	r = shared.Python(t, "open('/usr/x', 'w')")
	product.Ended(t, r, execution.StatusFailed, 1, "")
	want := "OSError: [Errno 30] Read-only file system: '/usr/x'\n"
	if product.GVisor() { // looks at the folder's owner first
		want = "PermissionError: [Errno 13] Permission denied: '/usr/x'\n"
	}
	if !strings.HasSuffix(r.Stderr, want) {
		t.Errorf("stderr is %s", r.Stderr)
	}
}
