// Package signin is the auth service built into snapcloud: an OAuth 2.0 authorization server for
// the command line, with pages where people sign in and approve logins.
//
// For programs, below the issuer {public_url}/auth:
//
//	GET  /.well-known/oauth-authorization-server   metadata (RFC 8414)
//	POST /device_authorization                     begin a login (RFC 8628)
//	POST /token                                    device_code and refresh_token grants,
//	                                               and token exchange for CI jobs (RFC 8693)
//	POST /revoke                                   end a login (RFC 7009)
//	GET  /jwks                                     public keys (RFC 7517)
//	GET  /userinfo                                 the user of an access token
//	POST /upstream/logout                          logout at an identity provider (back-channel)
//
// The client is public: it has no secret. Access tokens are JWTs (RFC 9068) that live ten minutes
// and end with their session. A refresh token is replaced at each use. Because a response can be
// lost, a used token may be redeemed again for a minute, as long as its successor was never used.
// In all other cases, the use of a replaced token ends its session.
//
// For people, all as plain forms that work without JavaScript:
//
//	GET  /device[?user_code=CODE]   the code to approve
//	POST /device                    csrf_token, user_code
//	GET  /signin?next=PATH          sign in, with a choice of organization
//	POST /signin                    csrf_token, next, organization, email, password
//	GET  /upstream/start            redirect to the organization's identity provider
//	GET  /upstream/callback[/SLUG]  return from the identity provider
//	GET  /device/confirm?user_code= the request: program, host, address, time
//	POST /device/confirm            csrf_token, user_code, decision=approve|deny
//	GET  /device/done?decision=     the decision was stored
//	GET  /account                   the user, their sessions and keys
//	POST /account/sessions/end      csrf_token, id
//	POST /account/keys              csrf_token, name, expires, from
//	POST /account/keys/revoke       csrf_token, id
//	POST /signout                   csrf_token
//
// Each form has a hidden field csrf_token, whose value depends on the browser's cookies. The
// response redirects (303) to the next page, except that POST /account/keys shows the new key. With
// several organizations that all have local users, the field organization may be left empty when
// the e-mail belongs to only one of them. All state is in the store, so any replica can handle any
// step.
package signin
