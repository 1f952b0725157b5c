// A goroutine starts another, which queues on its P, and blocks in a read of an empty pipe: the time
// until the other runs, p50 (ns). It then writes what the reader waits for. Two spinners for each P
// compute and yield, so that no P is idle and none comes to steal; the reader sleeps 30 ms before each
// time, in which a sysmon that saw nothing to do backs off.
package main

import (
	"fmt"
	"gobench/bench"
	"os"
	"runtime"
	"sort"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

const (
	gap  = 30 * time.Millisecond
	spin = 100 * time.Microsecond
)

func check(err error) {
	if err != nil {
		panic(err)
	}
}

func main() {
	w := bench.Workers()
	n := bench.Int("N", 200)
	var stop int32
	var spinners sync.WaitGroup
	for i := 0; i < 2*w; i++ {
		spinners.Add(1)
		go func() {
			for atomic.LoadInt32(&stop) == 0 {
				for t0 := time.Now(); time.Since(t0) < spin; {
				}
				runtime.Gosched()
			}
			spinners.Done()
		}()
	}
	var fds [2]int
	check(syscall.Pipe(fds[:]))
	late := make([]int, 0, n)
	buf := make([]byte, 1)
	for tries := 0; len(late) < n; tries++ {
		if tries == 2*n {
			fmt.Fprintln(os.Stderr, "the other mostly runs before the read")
			os.Exit(1)
		}
		time.Sleep(gap)
		ran := make(chan time.Time, 1)
		go func() {
			ran <- time.Now()
			_, err := syscall.Write(fds[1], []byte{1})
			check(err)
		}()
		t0 := time.Now()
		_, err := syscall.Read(fds[0], buf)
		check(err)
		if t := (<-ran).Sub(t0); t > 0 {
			late = append(late, int(t))
		}
	}
	atomic.StoreInt32(&stop, 1)
	spinners.Wait()
	sort.Ints(late)
	fmt.Printf("handoff_p50 %d %d\n", w, late[n/2])
}
