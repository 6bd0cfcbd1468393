//go:build linux

package soak

import (
	"io"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// mode is what a link does to the connections through it.
type mode string

const (
	pass  mode = "pass"  // forward
	cut   mode = "cut"   // end all connections, and new ones immediately
	reset mode = "reset" // end them with RST after a few bytes
	hole  mode = "hole"  // accept bytes and deliver them late
	lost  mode = "lost"  // like hole, but these connections never move again
	mute  mode = "mute"  // requests arrive, but the responses are lost
	slow  mode = "slow"  // every piece waits, and the buffer is small
)

// link is a proxy between two parts of the system.
type link struct {
	name string
	to   string
	in   net.Listener

	mu      sync.Mutex
	mode    mode
	changed chan struct{} // closed when the mode changes
	pipes   map[*pipe]bool
	chance  *rand.Rand
}

// pipe is one connection through a link.
type pipe struct {
	link     *link
	up, down net.Conn     // from the caller, and to the server
	budget   atomic.Int64 // bytes until a reset
	ended    chan struct{}
	once     sync.Once
}

// newLink returns a link that forwards everything to a server.
func newLink(t *testing.T, name, to string, seed uint64) *link {
	t.Helper()
	in, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := &link{name: name, to: to, in: in, mode: pass, changed: make(chan struct{}), pipes: map[*pipe]bool{},
		chance: rand.New(rand.NewPCG(seed, 7))}
	go l.accept()
	t.Cleanup(func() {
		in.Close()
		l.drop(func(*pipe) bool { return true })
	})
	return l
}

func (l *link) address() string { return l.in.Addr().String() }

func (l *link) accept() {
	for {
		c, err := l.in.Accept()
		if err != nil {
			return
		}
		go l.carry(c)
	}
}

func (l *link) carry(up net.Conn) {
	m, _ := l.now()
	if m == cut {
		abort(up)
		return
	}
	down, err := net.DialTimeout("tcp", l.to, 5*time.Second)
	if err != nil {
		abort(up)
		return
	}
	l.mu.Lock()
	p := &pipe{link: l, up: up, down: down, ended: make(chan struct{})}
	p.budget.Store(l.chance.Int64N(4096))
	l.pipes[p] = true
	l.mu.Unlock()
	go p.move(up, down, false)
	p.move(down, up, true)
}

// now returns the mode, and a channel that is closed when it changes.
func (l *link) now() (mode, <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.mode, l.changed
}

// set changes the mode. Connections that cannot outlive the change end.
func (l *link) set(m mode) {
	l.mu.Lock()
	was := l.mode
	l.mode = m
	close(l.changed)
	l.changed = make(chan struct{})
	l.mu.Unlock()
	if m == cut || m == reset || was == mute {
		l.drop(func(*pipe) bool { return true })
	}
}

// drop aborts the chosen connections.
func (l *link) drop(which func(*pipe) bool) {
	l.mu.Lock()
	var all []*pipe
	for p := range l.pipes {
		if which(p) {
			all = append(all, p)
		}
	}
	l.mu.Unlock()
	for _, p := range all {
		p.end()
	}
}

// end aborts both sides.
func (p *pipe) end() {
	p.once.Do(func() {
		close(p.ended)
		abort(p.up)
		abort(p.down)
		p.link.mu.Lock()
		delete(p.link.pipes, p)
		p.link.mu.Unlock()
	})
}

// abort closes a connection with RST.
func abort(c net.Conn) {
	if t, ok := c.(*net.TCPConn); ok {
		t.SetLinger(0)
	}
	c.Close()
}

// move forwards one direction until it ends. A connection that was caught by the mode lost holds
// incoming bytes, and does not report the end of one side to the other.
func (p *pipe) move(from, to net.Conn, answers bool) {
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		if !p.held(n, answers) {
			return
		}
		if n > 0 {
			if _, err := to.Write(buffer[:n]); err != nil {
				p.end()
				return
			}
		}
		if err == io.EOF {
			if half, ok := to.(*net.TCPConn); ok {
				half.CloseWrite()
			}
			if answers {
				p.end() // HTTP, PostgreSQL and S3 no longer use it
			}
			return
		}
		if err != nil {
			p.end()
			return
		}
	}
}

// held waits as the mode demands before n bytes are passed on, and reports
// whether they are.
func (p *pipe) held(n int, answers bool) bool {
	for {
		m, changed := p.link.now()
		switch {
		case m == hole || m == lost || m == mute && answers:
			select {
			case <-p.ended:
				return false
			case <-changed:
			}
			if m == lost {
				<-p.ended
				return false
			}
			continue
		case m == reset:
			if p.budget.Add(-int64(n)) < 0 {
				p.end()
				return false
			}
		case m == slow:
			p.pause(40*time.Millisecond+time.Duration(n)*time.Second/(256<<10), changed)
		}
		return true
	}
}

func (p *pipe) pause(d time.Duration, changed <-chan struct{}) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-changed:
	case <-p.ended:
	}
}
