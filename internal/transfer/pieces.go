package transfer

import (
	"context"
	"sync"
)

// pieceSize is how much one request fetches. It bounds how much still arrives
// after the right has ended, and how much is lost when a connection breaks.
const pieceSize = 8 << 20

// pieces is which pieces of a download are missing, being fetched and landed.
// Pieces count from 0.
type pieces struct {
	mu     sync.Mutex
	change sync.Cond
	state  []pieceState
	crc    []uint64
	first  int // no piece before it is missing
	over   bool
}

type pieceState uint8

const (
	missing pieceState = iota
	fetching
	landed
)

func newPieces(count int, have map[int]uint64) *pieces {
	p := &pieces{state: make([]pieceState, count), crc: make([]uint64, count)}
	p.change.L = &p.mu
	for n, crc := range have {
		if n >= 0 && n < count {
			p.state[n], p.crc[n] = landed, crc
		}
	}
	return p
}

// next returns a piece to fetch: the first that is missing. It waits while
// there is none, because a landed one may turn out bad, and reports false when
// the download is over.
func (p *pieces) next() (n int, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for !p.over {
		for ; p.first < len(p.state); p.first++ {
			if p.state[p.first] == missing {
				p.state[p.first] = fetching
				return p.first, true
			}
		}
		p.change.Wait()
	}
	return 0, false
}

// set moves a piece to another state.
func (p *pieces) set(n int, s pieceState, crc uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.state[n], p.crc[n] = s, crc
	if s == missing {
		p.first = min(p.first, n)
	}
	p.change.Broadcast()
}

// await waits until a piece has landed and returns its checksum. It reports
// false when the download is over before.
func (p *pieces) await(n int) (crc uint64, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for !p.over {
		if p.state[n] == landed {
			return p.crc[n], true
		}
		p.change.Wait()
	}
	return 0, false
}

// end wakes everyone who waits.
func (p *pieces) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.over = true
	p.change.Broadcast()
}

// endWith ends the download with its context.
func (p *pieces) endWith(ctx context.Context) (stop func() bool) {
	return context.AfterFunc(ctx, p.end)
}
