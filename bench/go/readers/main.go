// Two goroutines compute: ns a unit of their work (of both, by the clock), alone (readers_off) and beside
// 64 goroutines in blocking reads of pipes (readers), of which each gets a byte once a second. Least of
// rounds that take turns.
package main

import (
	"fmt"
	"gobench/bench"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

const (
	readers = 64
	unit    = 1024 // steps
)

var sink [2]uint64

type counter struct {
	units int64
	_     [120]byte // no neighbours in its cache lines
}

var (
	count [2]counter
	stop  int32
	pipes [readers][2]int
)

func check(err error) {
	if err != nil {
		panic(err)
	}
}

func compute(g int) {
	x := uint64(g) + 1
	for atomic.LoadInt32(&stop) == 0 {
		for i := 0; i < unit; i++ {
			x ^= x << 13
			x ^= x >> 7
			x ^= x << 17
		}
		atomic.AddInt64(&count[g].units, 1)
	}
	sink[g] = x
}

func units() int64 {
	return atomic.LoadInt64(&count[0].units) + atomic.LoadInt64(&count[1].units)
}

// rate: what a unit takes, over one span.
func rate(span time.Duration) float64 {
	u, t0 := units(), time.Now()
	time.Sleep(span)
	return float64(time.Since(t0)) / float64(units()-u)
}

func read(fd int, entered *int32, done *sync.WaitGroup) {
	buf := make([]byte, 1)
	atomic.AddInt32(entered, 1)
	for buf[0] != 'q' {
		_, err := syscall.Read(fd, buf)
		check(err)
	}
	done.Done()
}

// feed: readers bytes in each period, one after the other. Who wakes late writes what is due.
func feed(period time.Duration, quit *int32, done *sync.WaitGroup) {
	t0, sent := time.Now(), 0
	for atomic.LoadInt32(quit) == 0 {
		for due := int(time.Since(t0) * readers / period); sent < due; sent++ {
			_, err := syscall.Write(pipes[sent%readers][1], []byte{'b'})
			check(err)
		}
		time.Sleep(period / readers)
	}
	for i := range pipes {
		_, err := syscall.Write(pipes[i][1], []byte{'q'})
		check(err)
	}
	done.Done()
}

func beside(span, period time.Duration) float64 {
	var entered, quit int32
	var done sync.WaitGroup
	done.Add(readers + 1)
	for i := range pipes {
		go read(pipes[i][0], &entered, &done)
	}
	for atomic.LoadInt32(&entered) < readers {
		runtime.Gosched()
	}
	go feed(period, &quit, &done)
	time.Sleep(100 * time.Millisecond)
	ns := rate(span)
	atomic.StoreInt32(&quit, 1)
	done.Wait()
	return ns
}

func main() {
	w := bench.Workers()
	rounds := bench.Int("ROUNDS", 3)
	span := time.Duration(bench.Int("SPAN_MS", 1000)) * time.Millisecond
	period := time.Duration(bench.Int("PERIOD_MS", 1000)) * time.Millisecond
	for i := range pipes {
		check(syscall.Pipe(pipes[i][:]))
	}
	var computing sync.WaitGroup
	computing.Add(2)
	for g := 0; g < 2; g++ {
		go func(g int) {
			compute(g)
			computing.Done()
		}(g)
	}
	var alone, with float64
	for r := 0; r < rounds; r++ {
		if ns := rate(span); r == 0 || ns < alone {
			alone = ns
		}
		if ns := beside(span, period); r == 0 || ns < with {
			with = ns
		}
	}
	atomic.StoreInt32(&stop, 1)
	computing.Wait()
	fmt.Printf("readers_off %d %.2f\nreaders %d %.2f\n", w, alone, w, with)
}
