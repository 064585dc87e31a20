package rich

import (
	"fmt"
	"strings"
	"testing"

	"github.com/preheat-dev/preheat/api/execution"
	"github.com/preheat-dev/preheat/tests/product"
)

// listed writes artifacts without their content.
func listed(r execution.Result) string {
	var b strings.Builder
	for _, a := range r.Artifacts {
		fmt.Fprintf(&b, "%s %d %s %s %s\n", a.Path, a.Size, a.MIME, a.Encoding, a.Omitted)
	}
	return b.String()
}

func TestS6Artifacts(t *testing.T) {
	t.Parallel()
	r := run(t, `import os
os.makedirs("out")
with open("out/a.csv", "w") as f: f.write("x,é\n")
with open("b.png", "wb") as f: f.write(b"\x89PNG\r\n")
with open("nul.txt", "wb") as f: f.write(b"a\0b")
open("empty", "w").close()`)
	want := []execution.Artifact{
		{Path: "b.png", Size: 6, MIME: "image/png", Encoding: "base64", Content: "iVBORw0K"},
		{Path: "empty", Size: 0, MIME: "application/octet-stream", Encoding: "utf-8"},
		{Path: "nul.txt", Size: 3, MIME: "text/plain", Encoding: "base64", Content: "YQBi"},
		{Path: "out/a.csv", Size: 5, MIME: "text/csv", Encoding: "utf-8", Content: "x,é\n"},
	}
	if fmt.Sprint(r.Artifacts) != fmt.Sprint(want) {
		t.Errorf("the artifacts are %+v", r.Artifacts)
	}
	product.Equal(t, "notes", len(r.Notes), 0)
}

// TestS6WhatIsNoArtifact: input files and the program itself, unless they
// were changed; files of a program that failed are artifacts like any other.
func TestS6WhatIsNoArtifact(t *testing.T) {
	t.Parallel()
	request := func(code string) execution.Request {
		return execution.Request{Language: "python", Code: code, Files: []execution.File{{Path: "in/data", Content: "given"}, {Path: "other", Content: "x"}}}
	}
	for _, tt := range []struct{ name, code, want string }{
		{"untouched", "open('in/data').read()\nNone", ""},
		{"changed", "open('in/data', 'a').write('!'); None", "in/data 6 application/octet-stream utf-8 \n"},
		{"the program itself", "open('main.py', 'a').write('# more'); None", "main.py 48 text/plain utf-8 \n"},
		{"moved", "import os; os.rename('other', 'moved')", "moved 1 application/octet-stream utf-8 \n"},
		{"by a program that fails", "open('new', 'w').close(); raise SystemExit(1)", "new 0 application/octet-stream utf-8 \n"},
		{"elsewhere", "open('/tmp/x', 'w').close(); None", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			product.Equal(t, "artifacts", listed(shared.Execute(t, request(tt.code))), tt.want)
		})
	}
}

func TestS6ArtifactsOfAProgramThatWasKilled(t *testing.T) {
	t.Parallel()
	r := shared.Execute(t, execution.Request{
		Language: "bash", Code: "echo partial > log; sleep 100", Limits: execution.Limits{TimeoutSeconds: 0.5},
	})
	product.Ended(t, r, execution.StatusTimedOut, 137, "SIGKILL")
	product.Equal(t, "artifacts", listed(r), "log 8 application/octet-stream utf-8 \n")
}

func TestS6Limits(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, code string
		count      int
		notes      string
		last       string
	}{
		{"number", "for i in range(22):\n    open(f'{i:02}', 'w').close(); os.utime(f'{i:02}', (i, i))", 20, "2 more file(s) were written than the 20 that are returned: 01 (0 bytes), 00 (0 bytes)", ""},
		{"size", "for i, n in enumerate('cba'):\n    open(n, 'wb').write(bytes(7 << 20)); os.utime(n, (i, i))", 3, "", "larger than what is left of the size limit"},
		{"entries", "for i in range(11000): open(str(i), 'w').close()", 0, "the list of files is incomplete: there are more than 10000 directory entries", ""},
		{"depth", "import os\nos.makedirs('d/' * 40); open('d/' * 40 + 'x', 'w').close()\nopen('y', 'w').close()", 1, "the list of files is incomplete: directories are nested deeper than 32", ""},
		{"folders that may not be read", "import os\nos.mkdir('d'); open('d/x', 'w').close(); os.chmod('d', 0)", 0, "the list of files is incomplete: d: directory is unreadable", ""},
		{"a file that may not be read", "import os\nopen('x', 'w').close(); os.chmod('x', 0)", 1, "", "unreadable"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := run(t, "import os\n"+tt.code)
			product.Equal(t, "number of artifacts", len(r.Artifacts), tt.count)
			product.Equal(t, "notes", strings.Join(r.Notes, "; "), tt.notes)
			if tt.count > 0 && tt.count == len(r.Artifacts) {
				product.Equal(t, "what became of the last one", r.Artifacts[tt.count-1].Omitted, tt.last)
			}
		})
	}
}

func TestS7HostileFiles(t *testing.T) {
	t.Parallel()
	r := run(t, `import os, socket
os.symlink("/etc/passwd", "x")
os.symlink("/etc", "folder")
os.symlink(".", "loop")
os.mkfifo("fifo")
s = socket.socket(socket.AF_UNIX); s.bind("socket")
with open("sparse", "wb") as f: f.truncate(100 << 30)
open(b"\xff\xfe.bin", "w").close()
open("a\n.txt", "w").close()
open("-rf", "w").close()
open("\u202egnp.exe", "w").close()
open("\\x41", "w").close()
os.link("a\n.txt", "hard")`)
	const binary = "application/octet-stream utf-8"
	product.Equal(t, "artifacts", listed(r), `-rf 0 `+binary+` 
\\x41 0 `+binary+` 
a\x0a.txt 0 text/plain utf-8 
fifo 0 `+binary+` not a regular file
folder 4 `+binary+` symbolic link
hard 0 `+binary+` 
loop 1 `+binary+` symbolic link
socket 0 `+binary+` not a regular file
sparse 107374182400 `+binary+` larger than what is left of the size limit
x 11 `+binary+` symbolic link
`+"\u202e"+`gnp.exe 0 `+binary+` 
\xff\xfe.bin 0 `+binary+` 
`)
}

// TestS7WorkFolderReplaced: the program may do to its work folder whatever it
// is allowed to.
func TestS7WorkFolderReplaced(t *testing.T) {
	t.Parallel()
	for name, code := range map[string]string{
		"emptied":       "import os\nfor n in os.listdir('.'): os.remove(n)",
		"not readable":  "import os\nos.chmod('/work', 0)",
		"not enterable": "import os\nopen('x', 'w').close(); os.chmod('/work', 0o444)",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := run(t, code)
			if len(r.Artifacts) != 0 {
				t.Errorf("the artifacts are %+v", r.Artifacts)
			}
		})
	}
}
