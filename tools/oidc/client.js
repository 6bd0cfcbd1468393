// A third-party client for the tests: the certified openid-client goes through
// our device grant. It prints the code, waits for a line that says it was
// approved, and prints what it got.
import readline from 'node:readline/promises'
import * as client from 'openid-client'

const say = (value) => console.log(JSON.stringify(value))
const approved = readline.createInterface({ input: process.stdin })
const config = await client.discovery(new URL(process.env.ISSUER), 'snapcli', undefined, client.None(), {
  algorithm: process.env.ALGORITHM, execute: [client.allowInsecureRequests, client.enableNonRepudiationChecks],
})
const started = await client.initiateDeviceAuthorization(config, { scope: 'openid profile email offline_access' })
say(started)
await new Promise((resolve) => approved.once('line', resolve))
approved.close()
const tokens = await client.pollDeviceAuthorizationGrant(config, { ...started, interval: 0.01 })
const refreshed = await client.refreshTokenGrant(config, tokens.refresh_token)
const who = await client.fetchUserInfo(config, refreshed.access_token, tokens.claims().sub)
await client.tokenRevocation(config, refreshed.refresh_token)
const after = await client.refreshTokenGrant(config, refreshed.refresh_token).then(() => 'refreshed', (e) => e.error)
say({ token_type: tokens.token_type, claims: tokens.claims(), who, after })
