// Reads of 4 KB at random places of a file of 64 MB: the twin of fileread.c, by File.ReadAt.
package main

import (
	"fmt"
	"gobench/bench"
	"os"
	"sync"
	"syscall"
	"time"
)

const (
	page  = 4096
	pages = 16384

	fadvRandom   = 1
	fadvDontneed = 4
)

var file *os.File

func check(err error) {
	if err != nil {
		panic(err)
	}
}

func advise(advice uintptr) {
	if _, _, e := syscall.Syscall6(syscall.SYS_FADVISE64, file.Fd(), 0, 0, advice, 0, 0); e != 0 {
		panic(e)
	}
}

func makeFile() {
	var err error
	file, err = os.CreateTemp(".", "fileread.")
	check(err)
	check(os.Remove(file.Name()))
	block := make([]byte, 64*page)
	for i := 0; i < pages/64; i++ {
		for j := range block {
			block[j] = byte(i)
		}
		_, err = file.Write(block)
		check(err)
	}
	check(file.Sync())
}

func reads(seed uint32, n int) {
	buf := make([]byte, page)
	for i := 0; i < n; i++ {
		seed = seed*1664525 + 1013904223
		at := int64(seed>>8) % pages
		if k, _ := file.ReadAt(buf, at*page); k != page || buf[0] != byte(at/64) {
			panic("read")
		}
	}
}

func batch(readers, n int, seed uint32) time.Duration {
	var wg sync.WaitGroup
	t0 := time.Now()
	for i := 0; i < readers; i++ {
		wg.Add(1)
		go func(seed uint32) {
			defer wg.Done()
			reads(seed, n/readers)
		}(uint32(i+1)*7919 + seed*104729)
	}
	wg.Wait()
	return time.Since(t0)
}

func measure(name string, workers, readers, n, batches int, cold bool) {
	best := time.Duration(1 << 62)
	n = n / batches / readers * readers
	for b := 0; b < batches; b++ {
		if cold {
			advise(fadvDontneed)
		}
		if t := batch(readers, n, uint32(b)); t < best {
			best = t
		}
	}
	fmt.Printf("%s %d %.2f\n", name, workers, float64(best.Nanoseconds())/float64(n))
}

func main() {
	w := bench.Workers()
	warm, cold := bench.Int("N", 400000), bench.Int("COLD", 8000)
	makeFile()
	measure("fileread_warm", w, w, warm, 100, false)
	advise(fadvRandom)
	measure("fileread_cold1", w, 1, cold, 20, true)
	measure("fileread_cold32", w, 32, cold, 20, true)
}
