// Skynet with wait groups: 10-ary tree with 1,000,000 leaves; a child writes into its slot of its
// parent's array. Prints ns per leaf, then the peak RSS in bytes as skynet_wg_rss.
package main

import (
	"fmt"
	"gobench/bench"
	"sync"
	"time"
)

func skynet(out *int, num, size int) {
	if size == 1 {
		*out = num
		return
	}
	var wg sync.WaitGroup
	var part [10]int
	wg.Add(10)
	for i := 0; i < 10; i++ {
		i := i
		go func() {
			skynet(&part[i], num+i*(size/10), size/10)
			wg.Done()
		}()
	}
	wg.Wait()
	sum := 0
	for _, p := range part {
		sum += p
	}
	*out = sum
}

func main() {
	w := bench.Workers()
	n := bench.Int("N", 1000000)
	r := 0
	t0 := time.Now()
	skynet(&r, 0, n)
	bench.Report("skynet_wg", w, n, t0)
	if r != n*(n-1)/2 {
		panic("wrong sum")
	}
	fmt.Printf("skynet_wg_rss %d %d\n", w, bench.RSS("VmHWM"))
}
