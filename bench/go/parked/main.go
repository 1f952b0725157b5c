// N goroutines parked on one channel: creation ns each, RSS bytes each (and with the kernel's page
// tables for them), wake-and-exit ns each.
package main

import (
	"fmt"
	"gobench/bench"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

func main() {
	w := bench.Workers()
	n := bench.Int("N", 100000)
	var started int64
	var wg sync.WaitGroup
	c := make(chan struct{})
	r0, pt0 := bench.RSS("VmRSS"), bench.RSS("VmPTE")
	t0 := time.Now()
	wg.Add(n)
	for i := 0; i < n; i++ {
		go func() {
			atomic.AddInt64(&started, 1)
			<-c
			wg.Done()
		}()
	}
	for atomic.LoadInt64(&started) < int64(n) {
		runtime.Gosched()
	}
	bench.Report(fmt.Sprintf("parked_create_%d", n), w, n, t0)
	r, pt := bench.RSS("VmRSS")-r0, bench.RSS("VmPTE")-pt0
	fmt.Printf("parked_bytes_%d %d %.1f\n", n, w, float64(r)/float64(n))
	fmt.Printf("parked_bytes_pt_%d %d %.1f\n", n, w, float64(r+pt)/float64(n))
	t0 = time.Now()
	close(c)
	wg.Wait()
	bench.Report(fmt.Sprintf("parked_wake_%d", n), w, n, t0)
}
