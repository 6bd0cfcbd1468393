// Package soak is a test alone: it runs the whole service, several replicas over
// PostgreSQL and an S3-compatible server, under a mixed load of many clients,
// and breaks every part of it at random by a schedule that a seed makes. What
// must hold meanwhile and afterwards is compared with a model in the test:
//
//   - Every answered change survives. One that got no answer happened or did
//     not, and then stays so, for everyone at every replica.
//   - What was revoked is not served: after an answered unshare, revocation,
//     deletion or sign-in that took groups away, no request that is begun later
//     succeeds at any replica, nor by a URL that was given out before (by one of
//     the storage itself for a minute at most).
//   - A caller who may see a snapshot never gets not_found.
//   - Every pull returns the pushed bytes.
//   - No login session is lost by a refresh whose answer was lost.
//   - A failure is a broken connection or a documented one: 503 comes with
//     Retry-After, and there is no 500, no panic and no data race.
//   - Background work is one replica's at a time, and a lost one is replaced:
//     one that was killed, and one that was paused in the middle of it and resumes.
//   - /readyz says when database or storage is away, and when it is back.
//   - When the faults end, requests succeed again at every replica within a bound.
//   - Nothing leaks: goroutines and open files come down again.
//   - At the end every audit chain verifies and has each answered push once,
//     every event has reached its webhook, and after a collection the storage
//     holds what is listed and nothing else.
//
// SNAP_SOAK is how long it runs (30 seconds or so without it), SNAP_SOAK_SEED
// repeats a schedule, and SNAP_SOAK_OLD names a snapcloud program of an older
// release: every replica is one and then the other, two releases side by side
// at any time. How the older one words its failures is not looked at, and its
// memory is not measured; all else holds. With SNAP_SOAK_POOLED the replicas reach PostgreSQL
// through PgBouncer in transaction mode.
package soak
