package runc

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	gorunc "github.com/containerd/go-runc"

	"github.com/preheat-dev/preheat/functions/execute/pool/local"
)

// Backend makes and destroys sandboxes.
type Backend struct {
	config Config
	host   Host
	image  Image
	// runtime is what the configuration needs, runc how it is called.
	runtime runtime
	runc    *gorunc.Runc
	// ranges are the numbers of the ranges of host ids that no sandbox has.
	ranges chan int
	// ids is nil without root: there is one range then.
	ids    *register
	locked *os.File
	// roots is nil where sandboxes share the image's files.
	roots *roots

	reaper reaper
	stop   context.CancelFunc
	done   sync.WaitGroup
}

var _ local.Backend = (*Backend)(nil)

// New removes what an earlier process left. The caller closes the backend when
// nothing is made of it any longer.
func New(ctx context.Context, c Config, log *slog.Logger) (*Backend, error) {
	host, err := DetectHost()
	if err != nil {
		return nil, err
	}
	if err := c.Runtime.runtime().check(ctx, c.Binary, host); err != nil {
		return nil, err
	}
	log.Info("Sandboxes are containers", "runtime", c.Runtime.runtime().name(), "binary", c.Binary)
	if c.StateDir, err = makeStateDir(c.StateDir); err != nil {
		return nil, err
	}
	for _, weakness := range host.Weaker() {
		log.Warn("Sandboxes are weaker on this machine", "how", weakness)
	}
	image, err := LoadImage(c.Image)
	if err != nil {
		return nil, err
	}
	if host.limitsDisks() {
		for _, path := range []string{image.Rootfs, c.RunnerDir, c.StateDir} {
			if d, found := diskOf("/sys", path); found && !slices.Contains(host.disks, d) {
				host.disks = append(host.disks, d)
			}
		}
	}
	if len(host.disks) == 0 {
		log.Warn("Sandboxes are weaker on this machine", "how", "Nothing limits what they read of the image's disk: it is none that cgroups can limit.")
	}
	if err := adoptOrphans(); err != nil {
		return nil, err
	}
	b := newBackend(c, host, image)
	if err := b.open(ctx, register{registerDir}); err != nil {
		return nil, err
	}
	if host.Root {
		if b.roots, err = openRoots(c, image); err != nil {
			log.Warn("Sandboxes are weaker on this machine", "how", "Without an overlay of their own, sandboxes share the image's files: what one locks another sees locked.", "error", err)
		}
	}
	background, stop := context.WithCancel(context.WithoutCancel(ctx))
	b.stop = stop
	b.done.Go(func() { b.reaper.run(background) })
	return b, nil
}

func newBackend(c Config, h Host, im Image) *Backend {
	b := &Backend{config: c, host: h, image: im, ranges: make(chan int, c.Sandboxes), runtime: c.Runtime.runtime()}
	b.runc = &gorunc.Runc{
		Command: c.Binary, Root: runcRoot(c.StateDir), Log: filepath.Join(c.StateDir, "runc.log"), LogFormat: gorunc.Text,
		ExtraArgs: b.runtime.flags(),
	}
	return b
}

// open makes the state folder this backend's, removes what is left in it, and
// takes what belongs to this machine's servers together.
func (b *Backend) open(ctx context.Context, ids register) (err error) {
	lockState := func() (err error) {
		b.locked, err = lock(b.config.StateDir)
		return err
	}
	if b.host.Root {
		b.ids = &ids
		err = ids.locked(ctx, lockState)
	} else {
		err = lockState()
	}
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, b.locked.Close())
		}
	}()
	if err := b.sweep(ctx); err != nil {
		return err
	}
	if err := limitTogether(b.config.StateDir, b.host, b.host.Memory/4*3); err != nil {
		return err
	}
	first := 0
	if b.ids != nil {
		if first, err = b.ids.take(ctx, b.config.StateDir, b.config.Sandboxes); err != nil {
			return err
		}
	}
	for n := range b.config.Sandboxes {
		b.ranges <- first + n
	}
	return nil
}

// cleanupTimeout bounds the removal of cgroups at the start, and of all that is
// left at the end.
const cleanupTimeout = 10 * time.Second

// Close removes what sandboxes have shared and lets another process use the
// state folder.
func (b *Backend) Close() error {
	b.stop()
	b.done.Wait()
	ctx, cancel := context.WithTimeout(context.Background(), cleanupTimeout)
	defer cancel()
	// gVisor keeps a network namespace there for all its sandboxes.
	problems := []error{unmountBelow(b.runc.Root)}
	if b.host.Cgroups {
		problems = append(problems, removeCgroups(ctx, b.config.StateDir, b.host))
	}
	if b.roots != nil {
		problems = append(problems, b.roots.close())
	}
	if b.ids != nil {
		problems = append(problems, b.ids.release(ctx, b.config.StateDir))
	}
	return errors.Join(append(problems, b.locked.Close())...)
}

// Version implements local.Backend.
func (b *Backend) Version(language string) string { return b.image.Versions[language] }

// Create implements local.Backend.
func (b *Backend) Create(ctx context.Context, p local.PoolConfig, name string) (local.Instance, error) {
	c := &container{backend: b, name: name, cgroup: b.cgroup(name)}
	select {
	case c.ids = <-b.ranges:
	default:
		return nil, fmt.Errorf("creating sandbox %s: %w: all id ranges are in use", name, local.ErrNoCapacity)
	}
	if err := c.start(ctx, p); err != nil {
		return c, fmt.Errorf("creating sandbox %s: %w", name, err)
	}
	return c, nil
}

// release gives back the id range of a container of which nothing is left.
func (b *Backend) release(c *container) {
	if c.ids >= 0 {
		b.ranges <- c.ids
		c.ids = -1
	}
}

func (b *Backend) cgroup(name string) cgroup {
	return cgroup{path: cgroupPath(b.config.StateDir, name), host: b.host}
}

func (b *Backend) bundle(name string) string {
	return filepath.Join(bundleRoot(b.config.StateDir), name)
}

func lockFile(stateDir string) string   { return filepath.Join(stateDir, "lock") }
func runcRoot(stateDir string) string   { return filepath.Join(stateDir, "runc") }
func bundleRoot(stateDir string) string { return filepath.Join(stateDir, "bundles") }
