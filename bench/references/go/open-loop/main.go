// Sends requests at a constant rate, whether or not earlier ones have been answered, and prints the percentiles of
// the time from the moment at which each request was due. A client that waits for a slow server would leave out
// the requests that the server delays most (coordinated omission).
package main

import (
	"bufio"
	"flag"
	"fmt"
	"io"
	"log"
	"math/rand"
	"net"
	"net/http"
	"net/url"
	"os"
	"sort"
	"sync"
	"time"
)

func main() {
	log.SetFlags(0)
	target := flag.String("url", "", "where to send the requests")
	first := flag.Int("first", 0, "the least number that is appended to the URL")
	last := flag.Int("last", 0, "the greatest number that is appended to the URL; 0 for none")
	rate := flag.Float64("rate", 0, "requests per second")
	seconds := flag.Float64("seconds", 0, "how long requests are due")
	connections := flag.Int("connections", 0, "how many connections are opened")
	token := flag.String("authorization", "", "the header Authorization")
	flag.Parse()
	parsed, err := url.Parse(*target)
	if err != nil || parsed.Host == "" || *rate <= 0 || *seconds <= 0 || *connections <= 0 {
		flag.Usage()
		os.Exit(2)
	}

	count := int(*rate * *seconds)
	due := make(chan time.Time, count)
	took := make([][]time.Duration, *connections)
	failed := make([]int, *connections)
	var clients sync.WaitGroup
	for n := range took {
		connection, err := net.Dial("tcp", parsed.Host)
		if err != nil {
			log.Fatal(err)
		}
		clients.Add(1)
		go func() {
			defer clients.Done()
			defer connection.Close()
			random := rand.New(rand.NewSource(int64(n)))
			reader := bufio.NewReaderSize(connection, 64*1024)
			for at := range due {
				path := parsed.RequestURI()
				if *last > 0 {
					path += fmt.Sprint(*first + random.Intn(*last-*first+1))
				}
				request := "GET " + path + " HTTP/1.1\r\nHost: " + parsed.Host + "\r\nAuthorization: " + *token + "\r\n\r\n"
				if _, err := io.WriteString(connection, request); err != nil {
					log.Fatal(err)
				}
				response, err := http.ReadResponse(reader, nil)
				if err != nil {
					log.Fatal(err)
				}
				if _, err := io.Copy(io.Discard, response.Body); err != nil {
					log.Fatal(err)
				}
				if response.StatusCode != http.StatusOK {
					failed[n]++
				}
				took[n] = append(took[n], time.Since(at))
			}
		}()
	}
	begin := time.Now()
	for n := 0; n < count; n++ {
		at := begin.Add(time.Duration(float64(n) / *rate * float64(time.Second)))
		if wait := time.Until(at); wait > 0 {
			time.Sleep(wait)
		}
		due <- at
	}
	close(due)
	clients.Wait()

	var all []time.Duration
	failures := 0
	for n := range took {
		all = append(all, took[n]...)
		failures += failed[n]
	}
	sort.Slice(all, func(a, b int) bool { return all[a] < all[b] })
	at := func(share float64) int64 { return all[min(len(all)-1, int(share*float64(len(all))))].Microseconds() }
	fmt.Printf("RESULT %d %d %d %d %d\n", len(all), failures, at(0.5), at(0.99), at(0.999))
}
